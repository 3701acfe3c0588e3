"""Rules checked, proposed and learned: from recordings and live answers to a rule file's next version (R1-R4)."""
