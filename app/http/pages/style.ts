/** The one style sheet of the pages: system fonts, light and dark by the reader's setting, no image, nothing from elsewhere. */
import { createHash } from 'node:crypto';

const colours = `
:root{color-scheme:light dark;
--paper:#fbfbf9;--card:#fff;--sunk:#f3f3ef;--line:#dfdfd8;--ink:#1d2125;--soft:#5a6068;--faint:#878d94;--link:#2454a6;--focus:#2454a6;
--ok:#17703f;--ok-bg:#e3f4ea;--bad:#b3261e;--bad-bg:#fce9e7;--wait:#8a5a00;--wait-bg:#fdf1d8;--busy:#2454a6;--busy-bg:#e6eefb;--off:#5a6068;--off-bg:#ececea}
@media (prefers-color-scheme:dark){:root{
--paper:#14171a;--card:#1b1f23;--sunk:#20252a;--line:#333a41;--ink:#e6e8ea;--soft:#a5adb5;--faint:#7d868f;--link:#8ab4f8;--focus:#8ab4f8;
--ok:#6fcf97;--ok-bg:#17301f;--bad:#ff8a80;--bad-bg:#3a1b1a;--wait:#f0bf5e;--wait-bg:#352a12;--busy:#8ab4f8;--busy-bg:#1a2a42;--off:#a5adb5;--off-bg:#282e34}}`;

const base = `
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
a{color:var(--link);text-decoration-thickness:1px;text-underline-offset:2px}
a:focus-visible,button:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:2px solid var(--focus);outline-offset:2px;border-radius:3px}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:.875em}
code{overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0 .4rem;font-weight:650;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.4rem 0 .8rem;font-weight:650}
h3{font-size:1rem;margin:0;font-weight:600;overflow-wrap:anywhere}
p{margin:.4rem 0}
.skip{position:absolute;left:-9999px}
.skip:focus{left:1rem;top:.5rem;background:var(--card);padding:.4rem .8rem;z-index:1}
.top{border-bottom:1px solid var(--line);background:var(--card)}
.top>div,main,.foot{max-width:66rem;margin:0 auto;padding:0 1.25rem}
.top>div{display:flex;flex-wrap:wrap;align-items:center;gap:.3rem 1.4rem;min-height:3.4rem}
.brand{font-weight:700;color:var(--ink);text-decoration:none;letter-spacing:-.01em;display:flex;align-items:center;gap:.5rem}
.brand svg{display:block}
.top nav{display:flex;gap:1.1rem;flex:1}
.top nav a{color:var(--soft);text-decoration:none;padding:.2rem 0}
.top nav a:hover{color:var(--ink)}
.top nav a[aria-current]{color:var(--ink);font-weight:600;box-shadow:0 2px 0 var(--link)}
.who{display:flex;align-items:center;gap:.7rem;color:var(--soft);font-size:.9rem}
main{padding-top:1.6rem;padding-bottom:3rem}
.foot{padding-top:1rem;padding-bottom:2rem;color:var(--soft);font-size:.85rem}
button,.button{font:inherit;font-size:.9rem;color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.35rem .8rem;cursor:pointer;text-decoration:none;display:inline-block}
button:hover,.button:hover{background:var(--sunk)}
.primary{background:var(--ink);color:var(--paper);border-color:var(--ink);padding:.5rem 1.1rem}
.primary:hover{background:var(--soft);color:var(--paper)}
button.quiet{border:0;background:none;padding:.2rem .3rem;color:var(--link);text-decoration:underline;text-underline-offset:2px}
.soft{color:var(--soft)}.small{font-size:.875rem}.nowrap{white-space:nowrap}.num{text-align:right;font-variant-numeric:tabular-nums}
.meta{color:var(--soft);font-size:.93rem;display:flex;flex-wrap:wrap;gap:.15rem .9rem;align-items:center}
.crumb{color:var(--soft);font-size:.93rem;margin:0;overflow-wrap:anywhere}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1rem 1.2rem}
.lead{max-width:40rem}
.rows{gap:.4rem}.rows .card{padding:.55rem 1rem}.rows details{margin-top:.15rem;font-size:.9rem}
.rows li:target{border-color:var(--link)}
.pager{display:flex;gap:1rem;margin:1.2rem 0;flex-wrap:wrap;align-items:center}
.jump{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:1.2rem 0 0;font-size:.93rem}
.empty{color:var(--soft);background:var(--sunk);border-radius:10px;padding:1rem 1.2rem;margin:0}`;

const parts = `
.chip{display:inline-flex;align-items:center;gap:.35em;border-radius:999px;padding:.06rem .6rem;font-size:.8rem;font-weight:600;white-space:nowrap;background:var(--off-bg);color:var(--off)}
.chip svg{flex:none}
.ok{--tone:var(--ok);--tone-bg:var(--ok-bg)}.bad{--tone:var(--bad);--tone-bg:var(--bad-bg)}.wait{--tone:var(--wait);--tone-bg:var(--wait-bg)}.busy{--tone:var(--busy);--tone-bg:var(--busy-bg)}.off{--tone:var(--off);--tone-bg:var(--off-bg)}
.chip.ok,.chip.bad,.chip.wait,.chip.busy,.chip.off{color:var(--tone);background:var(--tone-bg)}
.verdict{border-left:5px solid var(--tone);margin-top:1.1rem;display:grid;grid-template-columns:auto 1fr;gap:.2rem 1rem;align-items:start}
.verdict>svg{color:var(--tone);margin-top:.15rem}
.verdict h2{margin:0;font-size:1.3rem;color:var(--tone)}
.verdict p{margin:.1rem 0}
.bar{display:block;width:100%;height:8px;margin:.7rem 0 .35rem}
.bar .all{fill:var(--sunk)}.bar .done{fill:var(--ok)}.bar .noted{fill:var(--faint)}
.list{list-style:none;margin:0;padding:0;display:grid;gap:.7rem}
.hold{border-left:4px solid var(--tone)}
.hold dl{margin:.5rem 0 0;display:grid;grid-template-columns:auto 1fr;gap:.15rem .9rem;font-size:.93rem}
.hold dt{color:var(--soft)}.hold dd{margin:0;overflow-wrap:anywhere}
.concerns{display:flex;flex-wrap:wrap;gap:.3rem;margin-top:.4rem}
.concerns code{background:var(--sunk);border-radius:4px;padding:.05rem .4rem}
.head{display:flex;flex-wrap:wrap;gap:.3rem .7rem;align-items:baseline}
.text{white-space:pre-wrap;overflow-wrap:anywhere;margin:.5rem 0 0}
pre{background:var(--sunk);border-radius:8px;padding:.7rem .9rem;overflow-x:auto;margin:.5rem 0 0;white-space:pre-wrap;overflow-wrap:anywhere}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}
table{border-collapse:collapse;width:100%;font-size:.93rem}
th,td{text-align:left;padding:.45rem .8rem;border-bottom:1px solid var(--line);vertical-align:top}
tbody tr:last-child>*{border-bottom:0}
thead th{color:var(--soft);font-weight:600;font-size:.82rem;background:var(--sunk);white-space:nowrap}
tbody th{font-weight:inherit}
th.num,td.num{text-align:right}
td.path{overflow-wrap:anywhere;min-width:12rem}
caption{text-align:left;padding:.5rem .8rem;color:var(--soft);font-size:.85rem;caption-side:bottom}
tr:target>*{background:var(--busy-bg)}
details{margin-top:.7rem}
summary{cursor:pointer;color:var(--link);width:fit-content}
.runs a.title{font-weight:600;color:var(--ink);text-decoration:none;overflow-wrap:anywhere}
.runs a.title:hover{text-decoration:underline}
.runs li{display:grid;grid-template-columns:9.5rem 1fr auto;gap:.2rem 1rem;align-items:baseline;padding:.75rem 1.1rem;border-bottom:1px solid var(--line)}
.runs li:last-child{border-bottom:0}
.runs ul{list-style:none;margin:0;padding:0}
.runs.card{padding:0}
.note{border-left:4px solid var(--tone);background:var(--tone-bg);border-radius:6px;padding:.7rem 1rem;margin:1rem 0}
.note h2{margin:0;font-size:1.05rem;color:var(--tone)}
figure{margin:0}
figure .scroll{padding:.6rem}
svg.chart{display:block;min-width:44rem;width:100%;height:auto;font-family:inherit}
svg.chart text{fill:var(--ink);font-size:13px}
svg.chart .faint{fill:var(--soft);font-size:12px}
svg.chart .box{fill:var(--card);stroke:var(--line)}
svg.chart .mark{fill:var(--tone)}
svg.chart .band{fill:var(--sunk)}
svg.chart .edge{fill:none;stroke:var(--line);stroke-width:1.5}
svg.chart .after{fill:none;stroke:var(--soft);stroke-width:1.5;stroke-dasharray:4 3}
svg.chart .tip{fill:var(--soft)}
svg.chart .grid{stroke:var(--line)}
svg.chart .queue{stroke:var(--faint);stroke-width:2;stroke-dasharray:2 3}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;color:var(--soft);font-size:.85rem;margin:.5rem 0 0;padding:0;list-style:none}
.legend li{display:flex;align-items:center;gap:.4em}
.legend svg{color:var(--tone)}`;

const narrow = `
@media (max-width:44rem){
h1{font-size:1.35rem}
main{padding-top:1.1rem}
.top>div,main,.foot{padding-left:.9rem;padding-right:.9rem}
.card{padding:.9rem}
.runs li{grid-template-columns:1fr}
.verdict{grid-template-columns:1fr}.verdict>svg{display:none}
.hold dl{grid-template-columns:1fr;gap:0}.hold dd{margin-bottom:.3rem}
.stack thead{position:absolute;left:-9999px}
.stack tr{display:block;border-bottom:1px solid var(--line);padding:.5rem 0}
.stack tbody tr:last-child{border-bottom:0}
.stack th,.stack td{display:block;border:0;padding:.1rem .9rem;text-align:left}
.stack td[data-label]::before{content:attr(data-label) ": ";color:var(--soft)}
}
@media print{.top nav,.who,.jump,button{display:none}}`;

/** The style sheet. */
export const STYLE = [colours, base, parts, narrow].join('\n').trim();

/** Its address, which changes with it, so that it may be kept for ever. */
export const STYLE_PATH = `/assets/${createHash('sha256').update(STYLE).digest('hex').slice(0, 16)}.css`;

/** The icon of the pages. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" fill="#1d2125"/><path d="M6 12.5l3.5 3.5L18 7.5" fill="none" stroke="#6fcf97" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round"/><path d="M6 19h12" stroke="#fff" stroke-width="1.6" stroke-linecap="round"/></svg>`;

/** Its address. */
export const ICON_PATH = '/assets/icon.svg';
