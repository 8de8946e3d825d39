/*
 * lib/looks.js: views in both themes, wide and on a phone: no serious violation of accessibility, nothing wider
 * than the screen, no problem shown; and a picture of each, in CONSOLE_SHOTS, for people to look at.
 *
 *     looks('all views', ready, () => [[name, path, async (p) => { what to do before looking }]])
 *
 * A view is opened once for each width. A theme is nothing but colours, so it changes under the open view,
 * and in the dark one axe looks at colours only. On a phone they are the same. The menu is looked at once.
 */
'use strict';
const fs = require('fs');
const path = require('path');
const { test, page, visit, leave, eq, shots, WAIT } = require('./kit');

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const COLOURS = ['color-contrast', 'link-in-text-block'];

const ALL = {}, OF_COLOURS = { runOnly: COLOURS }, NOT_OF_COLOURS = { rules: Object.fromEntries(COLOURS.map((rule) => [rule, { enabled: false }])) };

/* What axe finds, in a line for each violation that matters. */
async function violations(p, rules, menu) {
    if (!await p.evaluate(() => !!window.axe))
        await p.evaluate(AXE);
    const found = await p.evaluate(([place, some]) => axe.run(place, { resultTypes: ['violations'], ...some }), [menu ? { include: ['html'] } : { exclude: ['#side'] }, rules]);
    return found.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message || ''}`).join(' | ')}`);
}

function looks(title, ready, views, { problems = false } = {}) {
    for (const width of [1280, 390])
        test(`${title}, ${width} wide`, async () => {
            const endpoint = await ready(), bad = [], phone = width < 500, all = views(), p = await page({ width, height: phone ? 844 : 800 });
            const look = async (name, theme) => {
                await p.emulateMedia({ colorScheme: theme });
                if (!phone || theme === 'light')
                    bad.push(...(await violations(p, phone ? NOT_OF_COLOURS : theme === 'dark' ? OF_COLOURS : ALL, name === all[0][0])).map((text) => `${name}, ${theme}: ${text}`));
                if (shots)
                    await p.screenshot({ path: path.join(shots, `${name}-${theme}-${width}.png`) });
            };
            for (const [name, to, act] of all) {
                await visit(p, endpoint, to);
                await p.waitForFunction(() => !document.querySelector('#view [aria-busy=true]'), null, { timeout: WAIT });
                await act?.(p);
                const wide = await p.evaluate(() => document.documentElement.scrollWidth - innerWidth);
                if (wide > 0)
                    bad.push(`${name}: ${wide} pixels wider than the screen`);
                if (!problems && await p.locator('.state.problem').count())
                    bad.push(`${name}: ${await p.locator('.state.problem').first().innerText()}`);
                await look(name, 'light');
                await look(name, 'dark');
                await p.evaluate(() => document.querySelectorAll('dialog').forEach((d) => d.close()));
            }
            eq(bad, []);
            await leave(p);
        });
}

module.exports = { looks };
