"""How a report's page looks: on a screen, light or dark, on a telephone, and in print (contract C3).

Only values. The page's policy names this style by its hash, so that no other can be slipped in with a text. Colours
have the contrast that WCAG AA asks for; figures have tabular numerals, so that digits stand below digits.
"""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{--ink:#181b20;--soft:#59626e;--faint:#9aa2ad;--line:#e3e6ea;--rule:#c3c9d1;--paper:#fff;--card:#f7f8fa;
--good:#17703d;--bad:#b3261e;--shade:rgba(20,25,32,.13);
--c0:#0b559f;--c1:#e07b00;--c2:#178a58;--c3:#8f3fb5;--c4:#8a6d00;--c5:#6b7480}
@media (prefers-color-scheme:dark){:root{--ink:#e9ebee;--soft:#a3acb8;--faint:#737d8a;--line:#2a3038;--rule:#444c57;
--paper:#14171b;--card:#1c2026;--good:#63d192;--bad:#ff8f85;--shade:rgba(0,0,0,.6);
--c0:#63acf7;--c1:#ffb25e;--c2:#57cf98;--c3:#cf9cf2;--c4:#dcc04f;--c5:#a3acb8}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue","Noto Sans","Noto Naskh Arabic","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif;
font-variant-numeric:tabular-nums lining-nums}
main{max-width:1280px;margin:0 auto;padding:44px 32px 72px}
h1{font-size:30px;line-height:1.2;font-weight:650;letter-spacing:-.015em;margin:0 0 10px;overflow-wrap:anywhere}
h2{font-size:19px;line-height:1.3;font-weight:650;letter-spacing:-.005em;margin:52px 0 2px}
.facts{display:flex;flex-wrap:wrap;gap:2px 24px;margin:0 0 28px;font-size:13.5px}
.facts div{display:flex;gap:7px;min-width:0}
.facts dt{color:var(--soft)}
.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(172px,1fr));gap:12px;margin:0;padding:0;
list-style:none}
.card{display:grid;grid-row:span 3;grid-template-rows:subgrid;row-gap:3px;align-content:start;background:var(--card);
border:1px solid var(--line);border-radius:8px;padding:13px 16px 12px;min-width:0}
.card .label{color:var(--soft);font-size:13px;line-height:1.35}
.card .figure{font-size:20px;line-height:1.25;font-weight:600;letter-spacing:-.01em;overflow-wrap:anywhere;
align-self:baseline}
.card .unit{font-size:.7em;font-weight:500;color:var(--soft);letter-spacing:0;white-space:nowrap}
.card .more{color:var(--soft);font-size:12px;line-height:1.35}
.card.first .figure{font-size:27px}
.card .foot{display:flex;flex-direction:column;gap:2px}
.tone{font-size:12px;font-weight:600;line-height:1.35}
.good{border-inline-start:4px solid var(--good)}.good .figure,.good .tone{color:var(--good)}
.bad{border-inline-start:4px solid var(--bad)}.bad .figure,.bad .tone{color:var(--bad)}
.about{margin:0 0 10px;color:var(--soft);font-size:13.5px;max-width:80ch}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:34px 40px;margin:40px 0 0}
figure{margin:0;min-width:0;max-width:680px}
figcaption{font-weight:600;font-size:15px;margin:0 0 8px}
figure>svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font-size:11.5px;fill:var(--soft)}
svg .name{fill:var(--ink)}
svg .end{text-anchor:end}svg .mid{text-anchor:middle}
.grid{stroke:var(--line);stroke-width:1}.base{stroke:var(--faint)}
.hatch{fill:var(--paper);stroke:var(--paper);stroke-width:1.1}
polyline{fill:none;stroke-width:2;stroke-linejoin:round}
.legend{display:flex;flex-wrap:wrap;gap:3px 20px;list-style:none;margin:8px 0 0;padding:0;font-size:13px;
color:var(--soft)}
.legend li{display:flex;align-items:center;gap:8px;min-width:0}
.legend svg{flex:none;width:24px;height:12px}.legend line{stroke-width:2.4}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}
.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}
details{margin:8px 0 0;font-size:13px}summary{color:var(--soft);cursor:pointer;width:fit-content}
details .wide{max-height:340px}
.wide{overflow:auto;border-top:1px solid var(--rule);
background:linear-gradient(to right,var(--paper) 30%,transparent) left/44px 100% no-repeat local,
linear-gradient(to left,var(--paper) 30%,transparent) right/44px 100% no-repeat local,
linear-gradient(to right,var(--shade),transparent) left/12px 100% no-repeat scroll,
linear-gradient(to left,var(--shade),transparent) right/12px 100% no-repeat scroll}
.wide:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:13.5px;line-height:1.45}
th,td{padding:6px 10px;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);white-space:nowrap;
font-weight:400}
th:first-child,td:first-child{padding-left:0}th:last-child,td:last-child{padding-right:0}
thead th{color:var(--soft);font-weight:600;font-size:12.5px;line-height:1.3;white-space:normal;vertical-align:bottom;
border-bottom-color:var(--rule)}
.long{white-space:normal;min-width:200px;max-width:380px;overflow-wrap:anywhere}
.n{text-align:right}.z{color:var(--faint)}
abbr{text-decoration:underline dotted var(--faint);text-underline-offset:3px}
tbody tr:hover>*{background:var(--card)}
tfoot th,tfoot td{font-weight:600;border-bottom:0}
tfoot tr:first-child>*{border-top:1px solid var(--rule)}
@media (min-width:760px){tr>th:first-child{position:sticky;left:0;background:var(--paper)}}
.notes{margin:48px 0 0;padding:16px 38px;background:var(--card);border-radius:8px;color:var(--soft);
font-size:14px}
.notes li+li{margin-top:4px}
@media (max-width:640px){main{padding:26px 16px 48px}h1{font-size:24px}h2{margin-top:40px}
.cards{grid-template-columns:repeat(auto-fit,minmax(140px,1fr))}.card.first{grid-column:1/-1}
.card .figure{font-size:18px}}
@page{margin:14mm 14mm 16mm;@bottom-right{content:counter(page) " / " counter(pages);font:8.5px sans-serif;color:#666}}
@page across{size:landscape}
@media print{:root{--ink:#000;--soft:#444;--faint:#777;--line:#d5d5d5;--rule:#888;--paper:#fff;--card:#fff;
--good:#17703d;--bad:#b3261e;--c0:#0b559f;--c1:#e07b00;--c2:#178a58;--c3:#8f3fb5;--c4:#8a6d00;--c5:#6b7480}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
body{font-size:10.5px}main{max-width:none;padding:0}
h1{font-size:21px}h2{font-size:13.5px;margin-top:24px;break-after:avoid}.facts{font-size:9.5px;margin-bottom:14px}
.about{font-size:9.5px;margin-bottom:6px;break-after:avoid}
.cards{grid-template-columns:repeat(auto-fit,minmax(100px,1fr));gap:7px;padding:0 1px}.card{padding:6px 9px;row-gap:2px;
break-inside:avoid}
.card .label,.card .more,.tone{font-size:8.5px}.card .figure,.card.first .figure{font-size:12.5px}
.charts{grid-template-columns:1fr 1fr;gap:18px 24px;margin-top:20px}figure{break-inside:avoid}
figcaption{font-size:10.5px;margin-bottom:4px}.legend{font-size:8.5px}details{display:none}
.wide{overflow:visible;background:none}
table{font-size:8.5px;line-height:1.35}th,td{padding:2.6px 5px}thead th{font-size:.94em}
thead{display:table-header-group}tfoot{display:table-row-group}tr{break-inside:avoid}
tr>th:first-child{position:static;background:none}
thead th,.smallest th,.smallest td{white-space:normal}.smallest td.n,.smallest .d{white-space:nowrap}
.long{min-width:90px;max-width:none}abbr{text-decoration:none}
.across{page:across}
.small table{font-size:7.5px}.smaller table{font-size:6.6px}.smallest table{font-size:5.6px}
.small th,.small td,.smaller th,.smaller td{padding:2.2px 3.5px}.smallest th,.smallest td{padding:2px 2.4px}
.notes{font-size:9.5px;margin-top:20px;padding:8px 24px;border:1px solid var(--line);break-inside:avoid}}
"""
