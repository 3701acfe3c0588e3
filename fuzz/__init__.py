"""Fuzzing of the whole pipeline: any bytes become a plan (`plan`), every plan must keep the contract (`target`)."""
