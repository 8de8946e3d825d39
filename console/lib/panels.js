/*
 * lib/panels.js: what views of patterns are made of: a head with the tables of the pattern, sections
 * that load, rows, dialogs, and long actions.
 */
import { fill, h, typedInto, whenReleased } from './dom.js';
import { KINDS, follow, forgetPatterns, namesNew, tablesOf } from './patterns.js';
import { go, href } from './router.js';
import { server } from './client.js';
import { badge, check, code, dialog, empty, facts, field, job, loading, panel, problemNode, select, tabs, writeButton } from './ui.js';

export { badge, code, empty, facts, loading, panel, problemNode };

/* ---- states --------------------------------------------------------------------------------- */

/* There is nothing; the commands would make something. */
export const nothing = (title, text, ...commands) => h('div.state.empty', h('strong', title), text && h('p', text), commands.filter(Boolean).map((line) => code(line + (/^holdfast (demo|serve)/.test(line) ? '' : dbFlag()))));

/* ---- sections ------------------------------------------------------------------------------- */

/*
 * A box that shows what `load` gives, by `render`. What is there stays while it is loaded again, the
 * focus too, by data-focus. {refresh, close}
 */
export function section(box, load, render) {
    let run = 0, shown = false, closed = false;
    const abort = new AbortController();
    const refresh = async () => {
        const mine = ++run;
        box.setAttribute('aria-busy', 'true');
        if (!shown)
            fill(box, loading());
        try {
            const value = await load(abort.signal);
            await new Promise((done) => whenReleased(box, done));
            if (mine === run && !closed)
                swap(box, () => fill(box, render(value)));
            shown = true;
        } catch (error) {
            if (mine === run && !closed) {
                fill(box, problemNode(error, refresh));
                shown = false;
            }
        }
        if (mine === run)
            box.removeAttribute('aria-busy');
    };
    refresh();
    return { refresh, close: () => { closed = true; abort.abort(); } };
}

/* Change a box, and leave the focus where it was. */
function swap(box, change) {
    const mark = box.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
    change();
    if (mark !== undefined)
        [...box.querySelectorAll('[data-focus]')].find((e) => e.dataset.focus === mark)?.focus({ preventScroll: true });
}

/*
 * The page of a pattern: its head with the choice of the table and the tabs, and a body. open(body, table) fills the
 * body and gives {refresh, close, actions, tables (more of them to follow)}; it is called when there is a table.
 */
export async function patternPage(root, mark, ctx, { tabs: list = [], tab = list[0]?.[0], open }) {
    const kind = KINDS.find((k) => k.mark === mark), body = h('div.view');
    let view, table = ctx.query.table, names = [];
    const head = () => ctx.head({ title: kind.title, crumbs: [['Patterns', '#/patterns']],
        actions: [names.length > 1 ? h('select', { 'aria-label': 'Table', value: table, onchange: (e) => go(kind.path, { table: e.target.value, tab: tab === list[0]?.[0] ? '' : tab }) },
            names.map((name) => h('option', name))) : table && h('a.mono', { href: href('/tables', table, 'items'), title: 'The items of this table' }, table),
        view?.actions, view?.refresh && h('button', { type: 'button', onclick: view.refresh }, 'Refresh')].filter(Boolean),
        tabs: list.length ? tabs(list.map(([name, label]) => [label, href(kind.path, { table, tab: name === list[0][0] ? '' : name }), name === tab]), kind.title) : null });
    head();
    fill(root, body);
    fill(body, loading());
    try {
        names = await tablesOf(mark);
    } catch (error) {
        if (!table)
            throw error;
    }
    if (ctx.signal.aborted)
        return null;
    table ||= names.includes(kind.table) ? kind.table : names[0];
    if (!table) {
        fill(body, nothing(`No table holds ${kind.title.toLowerCase()}`, `${kind.about} The first use creates the table:`, kind.fill));
        const again = () => { forgetPatterns(); ctx.reopen(); };
        view = { actions: h('button', { type: 'button', onclick: again }, 'Look again') };
        ctx.on('writes', (writes) => namesNew(writes) && again());
        head();
        return null;
    }
    if (!names.includes(table))
        names = [table, ...names];
    view = await open(fill(body), table) || {};
    head();
    const end = view.refresh && follow([table, ...(view.tables || [])], view.refresh);
    return () => {
        end?.();
        view.close?.();
    };
}

/*
 * A form above a list, which goes to the same view with another query: [[name, label, value, "check" or choices]]; `keep` are
 * other members of the query.
 */
export function filters(path, table, list, keep = {}) {
    const inputs = {}, read = (name, kind) => (kind === 'check' ? (inputs[name].checked ? '1' : '') : inputs[name].value);
    const submit = () => go(path, { table, ...keep, ...Object.fromEntries(list.map(([name, , , kind]) => [name, read(name, kind)])) });
    return h('form.bar.end', { onsubmit: (e) => { e.preventDefault(); submit(); } }, list.map(([name, label, value, kind]) => {
        if (kind === 'check') {
            const node = check(label, value, submit);
            inputs[name] = node.querySelector('input');
            return node;
        }
        inputs[name] = Array.isArray(kind) ? select(kind.map((c) => (c === '' ? ['', 'all'] : c)), value, submit) : h('input', { type: 'search', value, autocomplete: 'off', spellcheck: 'false' });
        return field(label, inputs[name]);
    }), h('button', { type: 'submit' }, 'Show'));
}

/* There are more than are shown. */
export const more = (there, show) => !!there && h('p', h('button', { type: 'button', 'data-focus': 'more', onclick: show }, 'Show more'));

/* ---- rows ----------------------------------------------------------------------------------- */

/*
 * columns: [{label, cell(row), num, wide}]; options: {caption, keyOf, select (a Set of keys), onSelect, open(row), actions(row)}
 * On a phone each row is a card, whose labels are those of the columns.
 */
export function rows(columns, list, { caption, keyOf = (row, i) => i, select, onSelect, open, actions } = {}) {
    const boxes = [];
    const head = select ? h('input', { type: 'checkbox', 'aria-label': 'Select all', onchange: () => {
        list.forEach((row, i) => select[head.checked ? 'add' : 'delete'](keyOf(row, i)));
        show();
    } }) : null;
    const show = () => {
        boxes.forEach(([box, key]) => { box.checked = select.has(key); });
        const chosen = list.filter((row, i) => select.has(keyOf(row, i))).length;
        head.checked = chosen > 0 && chosen === list.length;
        head.indeterminate = chosen > 0 && chosen < list.length;
        onSelect?.();
    };
    const line = (row, i) => {
        const key = keyOf(row, i);
        let box = null;
        if (select) {
            box = h('input', { type: 'checkbox', 'aria-label': `Select ${key}`, 'data-focus': `s/${key}`, onchange: () => {
                select[box.checked ? 'add' : 'delete'](key);
                show();
            } });
            boxes.push([box, key]);
        }
        return h('tr', box ? h('td.pick', box) : null, columns.map((column, n) => {
            const content = column.cell(row, i);
            return h(n === 0 ? 'th' : 'td', { scope: n === 0 ? 'row' : null, class: [column.num && 'right', column.wide && 'wide'].filter(Boolean).join(' ') || null,
                'data-label': column.label }, n === 0 && open
                ? h('button.link', { 'data-focus': `o/${key}`, onclick: () => open(row) }, content) : column.wide && typeof content === 'string' ? h('div.clamp', { title: content.length > 60 ? content : null }, content) : content);
        }), actions ? h('td.actions', actions(row, i)) : null);
    };
    const table = h('table.plain.rows', caption ? h('caption.offscreen', caption) : null,
        h('thead', h('tr', select ? h('td.pick', head) : null, columns.map((c) => h('th', { scope: 'col', class: c.num ? 'right' : null }, c.label)),
            actions ? h('td') : null)), h('tbody', list.map(line)));
    if (select)
        show();
    return h('div.grid', { role: 'region', 'aria-label': caption || 'Rows', tabindex: '0' }, table);
}

/* Figures at the top of a view: [{label, value, hint, level, href}] */
export const tiles = (list) => h('div.tiles', list.filter(Boolean).map(({ label, value, hint, level, href: to }) => h(to ? 'a.tile' : 'div.tile', { href: to },
    h('strong', { class: level ? `${level}-text` : null }, value), h('span', label), hint && h('small', hint))));

/* A part of a whole, for eyes; the numbers are beside it. */
export function bar(part, whole, label) {
    return h('progress.bar', { value: whole ? part / whole : 0, max: 1, 'aria-label': label });
}

/* A button for what writes. */
export const writes = (label, fn, { danger, focus, small, primary } = {}) => writeButton(label, fn, {
    class: [danger && 'danger', small && 'small', primary && 'primary'].filter(Boolean).join(' '), 'data-focus': focus });

/* ---- dialogs and actions -------------------------------------------------------------------- */

/*
 * fields: [{name, label, value, type: text|number|area|check|choice, choices, hint, required}]; run(values) does it, and what it
 * throws is shown in the dialog, which stays. `typed`: the name to type first, for what destroys. Resolves to
 * true, undefined when it was canceled.
 */
export function ask(title, { text, fields = [], verb = 'OK', typed, run, wide, danger = !!typed }) {
    const inputs = {}, values = {};
    const control = (f) => (f.type === 'area' ? h('textarea', { rows: f.rows || 6, value: f.value ?? '', required: f.required, spellcheck: 'false' })
        : f.type === 'choice' ? select(f.choices, f.value)
            : h('input', { type: 'text', value: f.value ?? '', required: f.required, autocomplete: 'off', spellcheck: 'false', inputmode: f.type === 'number' ? 'decimal' : null }));
    const line = (f) => {
        if (f.type === 'check') {
            const node = check(f.label, f.value);
            inputs[f.name] = node.querySelector('input');
            return node;
        }
        inputs[f.name] = control(f);
        values[f.name] = typedInto(inputs[f.name], f.type === 'choice' ? inputs[f.name].value : String(f.value ?? ''));
        return field(f.label, inputs[f.name], f.hint);
    };
    const lines = fields.map(line), name = typed && h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', 'aria-label': `Type ${typed} to confirm`, 'data-confirms': '' });
    return dialog({ title, wide, body: [text && h('p', text), lines, name && h('label.field', h('span', 'Type ', h('code', typed), ' to confirm'), name)],
        actions: [{ text: 'Cancel' }, { text: verb, kind: danger ? 'danger' : 'primary', disabled: !!typed, run: async () => {
            await run(Object.fromEntries(fields.map((f) => [f.name, f.type === 'check' ? inputs[f.name].checked : values[f.name]()])));
            return true;
        } }],
        onopen: ({ buttons }) => name?.addEventListener('input', () => { buttons[1].disabled = name.value !== typed; }) });
}

/*
 * A long action, as a row with progress and Cancel: part(signal) does a part and gives how many it did,
 * until it gives 0.
 */
export function inParts(title, total, part, said = (n) => `${n.toLocaleString('en')} done`) {
    return job(title, async (step, signal) => {
        let done = 0;
        step(0, total);
        for (let n; (n = await part(signal)) > 0;)
            step(done += n, Math.max(total || 0, done));
        return said(done);
    });
}

/* ---- texts ---------------------------------------------------------------------------------- */

export function json(value) {
    return h('pre.json', { tabindex: 0 }, typeof value === 'string' ? value : JSON.stringify(value, null, 2));
}

/* Lines of two texts side by side: the longest common subsequence, of up to 2,000 lines. */
export function diff(before, after) {
    const a = before.split('\n').slice(0, 2000), b = after.split('\n').slice(0, 2000), at = (i, j) => i * (b.length + 1) + j;
    const best = new Uint16Array((a.length + 1) * (b.length + 1));
    for (let i = a.length - 1; i >= 0; i--)
        for (let j = b.length - 1; j >= 0; j--)
            best[at(i, j)] = a[i] === b[j] ? best[at(i + 1, j + 1)] + 1 : Math.max(best[at(i + 1, j)], best[at(i, j + 1)]);
    const lines = [];
    for (let i = 0, j = 0; i < a.length || j < b.length;)
        if (i < a.length && j < b.length && a[i] === b[j]) {
            lines.push([' ', a[i++]]);
            j++;
        } else if (j >= b.length || (i < a.length && best[at(i + 1, j)] >= best[at(i, j + 1)])) {
            lines.push(['-', a[i++]]);
        } else {
            lines.push(['+', b[j++]]);
        }
    return lines;
}

export function diffView(before, after) {
    const lines = diff(before, after), changed = lines.filter(([sign]) => sign !== ' ').length;
    return changed ? h('pre.json.diff', { tabindex: 0 }, lines.map(([sign, text]) => h('span', { class: sign === '+' ? 'diff-in' : sign === '-' ? 'diff-out' : null }, sign + ' ' + text + '\n')))
        : h('p.muted', 'No difference.');
}

/* Which --db a command line needs. */
export const dbFlag = () => (server.info?.database?.kind === 'remote' ? '' : ` --db ${location.origin}`);
