/*
 * views/editor.js: one item, as a form or as JSON.
 *
 * What is saved is what was changed: an UpdateItem with SET and REMOVE, on the condition that every
 * attribute is still as it was read. If somebody changed the item meanwhile, nothing is written;
 * the editor shows their changes, and goes on upon their version. A new item is a PutItem on the
 * condition that there is none with its key.
 */
import { add, fill, h, typedInto } from '../lib/dom.js';
import { placeholders } from '../lib/expr.js';
import { bytesText, many } from '../lib/time.js';
import { badge, button, confirm, dialog, field, select, toast } from '../lib/ui.js';
import { bare, base64ToBytes, bytesToBase64, bytesToHex, cellText, diff, fromPlain, hexToBytes, itemProblem, itemSize, numberProblem, plainItem, sameItem, TYPES, typedText, typeOf, equal } from '../lib/values.js';

const CONDITIONS_MAX = 80; /* attributes in one condition: an expression may have 300 operators and 4 KB */
const EMPTY = { S: '', N: '0', B: '', BOOL: false, NULL: true, M: {}, L: [], SS: [''], NS: ['0'], BS: [''] };

/* ---- the form ---- */

/* The value as another type, keeping what can be kept. */
function converted(value, type) {
    const from = typeOf(value), v = value[from], text = ['S', 'N', 'B'].includes(from) ? v : from === 'BOOL' ? String(v) : null;
    if (type === 'S')
        return { S: text ?? (from === 'NULL' ? '' : JSON.stringify(v)) };
    if (type === 'N' && text !== null && !numberProblem(text))
        return { N: text.trim() };
    if (type === 'B' && from === 'S')
        return { B: bytesToBase64(new TextEncoder().encode(v)) };
    if (type === 'BOOL')
        return { BOOL: text === 'true' };
    if (type.endsWith('S') && type.length === 2) {
        const list = from === 'L' ? v.filter((one) => one[type[0]] !== undefined).map((one) => one[type[0]]) : from.length === 2 && from[1] === 'S' ? v : text !== null ? [text] : [];
        return { [type]: list.length ? list : EMPTY[type] };
    }
    if (type === 'L' && from.length === 2)
        return { L: v.map((one) => ({ [from[0]]: one })) };
    if (type === 'L' && text !== null)
        return { L: [value] };
    return { [type]: structuredClone(EMPTY[type]) };
}

function wrong(input, text) {
    input.setAttribute('aria-invalid', 'true');
    input.title = text;
    throw Object.assign(new Error(text), { input });
}

function right(input) {
    input.removeAttribute('aria-invalid');
    input.title = '';
}

/* {node, get()} for text of a scalar; get throws, and marks the field. */
function scalar(type, text, label, locked) {
    if (type === 'B')
        return binary(text, label, locked);
    const long = type === 'S' && (text.length > 60 || text.includes('\n'));
    const input = type === 'S' ? h('textarea', { value: text, rows: Math.min(12, long ? Math.max(2, text.split('\n').length, Math.ceil(text.length / 70)) : 1), readOnly: locked, 'aria-label': label, spellcheck: 'false' })
        : h('input.mono', { type: 'text', value: text, readOnly: locked, inputmode: 'decimal', 'aria-label': label, autocomplete: 'off' });
    const typed = typedInto(input, text);
    return { node: input, get() {
        right(input);
        const problem = type === 'N' && numberProblem(input.value);
        return problem ? wrong(input, `${label}: ${problem}`) : type === 'N' ? input.value.trim() : typed();
    } };
}

function binary(text, label, locked) {
    let form = 'base64';
    const area = h('textarea', { value: text, rows: Math.min(8, 1 + Math.floor(text.length / 70)), readOnly: locked, 'aria-label': label, spellcheck: 'false' });
    const bytes = () => {
        right(area);
        try {
            return form === 'hex' ? hexToBytes(area.value) : base64ToBytes(area.value);
        } catch (error) {
            return wrong(area, `${label}: ${form === 'hex' ? error.message : 'expected base64'}`);
        }
    };
    const forms = select([['base64', 'base64'], ['hex', 'hex']], form, (next) => {
        try {
            const data = bytes();
            form = next;
            area.value = form === 'hex' ? bytesToHex(data) : bytesToBase64(data);
        } catch {
            forms.value = form;
        }
    }, { 'aria-label': `How ${label} is shown`, class: 'form-of' });
    return { node: h('div.binary', area, forms), get: () => bytesToBase64(bytes()) };
}

function editSet(type, list, label) {
    const rows = [], box = h('div.elements');
    const put = (text) => {
        const one = scalar(type[0], text, `${label}, element`), row = { one, node: h('div.element', one.node, button('×', () => { row.node.remove(); rows.splice(rows.indexOf(row), 1); }, { class: 'quiet', 'aria-label': 'Remove this element' })) };
        rows.push(row);
        add(box, row.node);
        return row;
    };
    list.forEach(put);
    return { node: h('div', box, button('Add element', () => put(type === 'NS' ? '0' : '').node.querySelector('input, textarea').focus(), { class: 'small' })), get() {
        const all = rows.map((row) => row.one.get());
        if (!all.length)
            throw new Error(`${label}: a set has at least one element; remove the attribute instead`);
        if (new Set(all).size !== all.length)
            throw new Error(`${label}: a set holds each element once`);
        return all;
    } };
}

function editList(list, label, depth) {
    const rows = [], box = h('div.nest');
    const put = (value) => {
        const one = editValue(value, `${label}[${rows.length}]`, depth + 1);
        const row = { one, node: h('div.attribute', h('div.head', h('span.muted', '•'), one.type, button('×', () => { row.node.remove(); rows.splice(rows.indexOf(row), 1); }, { class: 'quiet', 'aria-label': 'Remove this element' })), one.node) };
        rows.push(row);
        add(box, row.node);
    };
    list.forEach(put);
    return { node: h('div', box, button('Add element', () => put({ S: '' }), { class: 'small' })), get: () => rows.map((row) => row.one.get()) };
}

/* `locked`: names that cannot be changed: the key of an item that is there. */
function editMap(map, label, depth, locked = []) {
    const rows = [], box = h(depth ? 'div.nest' : 'div');
    const put = (name, value) => {
        const key = locked.includes(name), one = editValue(value, label ? `${label}.${name || '?'}` : name || 'new attribute', depth + 1, key);
        const input = h('input.name', { type: 'text', value: name, readOnly: key, 'aria-label': 'Name of the attribute', placeholder: 'name', autocomplete: 'off', spellcheck: 'false' });
        const row = { input, typed: typedInto(input, name), one, node: h('div.attribute', h('div.head', input, one.type, key ? badge('key') : button('×', () => { row.node.remove(); rows.splice(rows.indexOf(row), 1); }, { class: 'quiet', 'aria-label': `Remove ${name || 'this attribute'}` })), one.node) };
        rows.push(row);
        add(box, row.node);
        return row;
    };
    for (const name of [...locked.filter((n) => n in map), ...Object.keys(map).filter((n) => !locked.includes(n))])
        put(name, map[name]);
    return { node: h('div', box, button('Add attribute', () => put('', { S: '' }).input.focus(), { class: 'small' })), get() {
        const out = Object.create(null);
        for (const { input, typed, one } of rows) {
            const name = typed();
            right(input);
            if (!name)
                wrong(input, 'An attribute has no name');
            if (name in out)
                wrong(input, `${name} is there twice`);
            out[name] = one.get();
        }
        return out;
    } };
}

/* {node, type: the select of its type, get() -> value} */
function editValue(value, label, depth, locked = false) {
    const place = h('div.value-of');
    let type = typeOf(value), part;
    const draw = (v) => {
        const inner = v[type];
        part = type === 'BOOL' ? boolean(inner, label) : type === 'NULL' ? { node: h('span.muted', 'null'), get: () => true }
            : type === 'M' ? editMap(inner, label, depth) : type === 'L' ? editList(inner, label, depth)
                : type.length === 2 ? editSet(type, inner, label) : scalar(type, inner, label, locked);
        fill(place, part.node);
    };
    const chooser = select(Object.entries(TYPES), type, (next) => {
        let now;
        try {
            now = { [type]: part.get() };
        } catch {
            now = { [type]: EMPTY[type] };
        }
        type = next;
        draw(converted(now, next));
    }, { 'aria-label': `Type of ${label}`, disabled: locked, class: 'type-of' });
    draw(value);
    return { node: place, type: chooser, get: () => ({ [type]: part.get() }) };
}

function boolean(value, label) {
    const input = select([['true', 'true'], ['false', 'false']], String(value), null, { 'aria-label': label });
    return { node: input, get: () => input.value === 'true' };
}

/* ---- differences ---- */

const shown = (value) => (value === undefined ? h('span.muted', 'not there') : h('span', h('span.tag', typeOf(value), ' '), ['M', 'L'].includes(typeOf(value)) ? cellText(value, 600) : cellText(value, 2000)));

export function diffTable(changes, before = 'Before', after = 'After') {
    return h('div.grid.plain', h('table.changes', h('thead', h('tr', h('th', 'Attribute'), h('th', before), h('th', after))),
        h('tbody', changes.map((one) => h('tr', h('td', h('code', one.path.join('.'))), h('td.old', shown(one.before)), h('td.new', shown(one.after)))))));
}

/* ---- saving ---- */

const keyOf = (table, item) => Object.fromEntries(table.KeySchema.map((k) => [k.AttributeName, item[k.AttributeName]]));
export { keyOf };

/* The request that makes `base` into `item`; null if they are equal. */
export function saveRequest(table, base, item) {
    const p = placeholders(), key = keyOf(table, item), names = Object.keys(key);
    if (!base)
        return { operation: 'PutItem', request: p.into({ TableName: table.TableName, Item: item, ConditionExpression: `attribute_not_exists(${p.name(names[0])})`, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' }) };
    const set = [], remove = [], all = Object.keys({ ...base, ...item }).filter((name) => !names.includes(name));
    const changed = all.filter((name) => !equal(base[name], item[name]));
    if (!changed.length)
        return null;
    for (const name of changed)
        if (item[name] === undefined)
            remove.push(p.name(name));
        else
            set.push(`${p.name(name)} = ${p.value(item[name])}`);
    return { operation: 'UpdateItem', request: p.into({ TableName: table.TableName, Key: key,
        UpdateExpression: [set.length && `SET ${set.join(', ')}`, remove.length && `REMOVE ${remove.join(', ')}`].filter(Boolean).join(' '),
        ConditionExpression: unchanged(table, base, p, changed), ReturnValues: 'ALL_NEW', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' }) };
}

/* The condition that an item is as it was read. Of a very large one, those in `must` and some more attributes are compared. */
export function unchanged(table, base, p, must) {
    const keys = table.KeySchema.map((k) => k.AttributeName), all = [...new Set([...must, ...Object.keys(base)])].filter((name) => !keys.includes(name));
    const some = all.slice(0, Math.max(CONDITIONS_MAX, must.length));
    return [`attribute_exists(${p.name(keys[0])})`, ...some.map((name) => (base[name] === undefined ? `attribute_not_exists(${p.name(name)})` : `${p.name(name)} = ${p.value(base[name])}`))].join(' AND ');
}

/* ---- the editor ---- */

/* Edit `item`, or make a new one (with what `item` has). done(item or null) when it was saved or deleted. */
export async function editItem(ctx, table, item, { isNew = false, edited = false, done = () => { } } = {}) {
    const keys = table.KeySchema.map((k) => k.AttributeName), start = bare(item);
    let base = isNew ? null : start, mode = 'form', part, state = 'edit', drawn, close;
    if (isNew)
        for (const k of keys)
            start[k] ??= { [table.AttributeDefinitions.find((a) => a.AttributeName === k).AttributeType]: '' };
    const place = h('div.item-editor'), note = h('div.note', { role: 'alert' }), size = h('span.muted');
    const text = h('textarea.item-json', { rows: 18, spellcheck: 'false', 'aria-label': 'The item as JSON' });
    let save, back;

    /* Is there something that closing would lose? A value that is shown otherwise, as hex, is the same. */
    const fields = () => JSON.stringify([...place.querySelectorAll('input, textarea, select')].map((e) => e.value));
    function unsaved() {
        if (ctx.readOnly)
            return false;
        if (edited || state !== 'edit' || !sameItem(drawn.of, base || start))
            return true;
        if ((mode === 'json' ? text.value : fields()) === drawn.text)
            return false;
        try {
            return mode === 'json' || !sameItem(bare(part.get()), drawn.of);
        } catch {
            return true;
        }
    }

    function showForm(of) {
        mode = 'form';
        part = editMap(of, '', 0, isNew ? [] : keys);
        fill(place, part.node);
        drawn = { of, text: fields() };
        if (ctx.readOnly)
            place.querySelectorAll('input, textarea, select, button').forEach((e) => { if (!e.classList.contains('form-of')) e.tagName === 'INPUT' || e.tagName === 'TEXTAREA' ? (e.readOnly = true) : (e.disabled = true); });
        modes();
    }
    function showJson(of) {
        mode = 'json';
        text.value = typedText(of);
        text.readOnly = ctx.readOnly;
        drawn = { of, text: text.value };
        fill(place, text, h('small', 'DynamoDB’s JSON, with types. Plain JSON is understood too: its sets are {"$set": […]}, bytes {"$binary": "…"}.'));
        modes();
    }
    function read() {
        let value;
        if (mode === 'form') {
            value = part.get();
        } else {
            try {
                value = JSON.parse(text.value);
            } catch (error) {
                throw new Error(`This is not JSON: ${error.message}`);
            }
            const problem = itemProblem(value);
            if (problem) {
                const plain = Object.values(value || {}).some((v) => v && typeof v === 'object' && Object.keys(v).length === 1 && TYPES[Object.keys(v)[0]]) ? null : fromPlain(text.value).M;
                if (!plain)
                    throw new Error(problem);
                value = plain;
            }
        }
        const problem = itemProblem(value);
        if (problem)
            throw new Error(problem);
        value = bare(value);
        for (const k of keys)
            if (!value[k] || (base && !equal(value[k], base[k])))
                throw new Error(base ? `${k} is part of the key and cannot be changed. Use Duplicate to make an item with another key.` : `${k}: the key needs a value`);
        fill(size, `${bytesText(itemSize(value))} of 400 KiB`);
        return value;
    }
    function attempt(fn) {
        note.replaceChildren();
        try {
            return fn();
        } catch (error) {
            fill(note, error.message);
            error.input?.focus();
            return null;
        }
    }
    const toggles = { form: button('Form', () => mode !== 'form' && attempt(() => showForm(read()))), json: button('JSON', () => mode !== 'json' && attempt(() => showJson(read()))) };
    function modes() {
        for (const [name, node] of Object.entries(toggles))
            node.setAttribute('aria-pressed', String(name === mode));
    }
    const bar = h('div.bar', h('span.segments', toggles.form, toggles.json), size, h('span.grow'),
        !isNew && button('Duplicate', () => attempt(() => { const copy = read(); close(); editItem(ctx, table, copy, { isNew: true, edited: !sameItem(copy, base), done }); })),
        !isNew && !ctx.readOnly && button('Delete', remove, { class: 'danger' }));

    function review(value) {
        const changes = diff(base || {}, value);
        if (!changes.length)
            return void fill(note, 'Nothing was changed.');
        state = 'review';
        fill(place, h('p', base ? `${changes.length} ${changes.length === 1 ? 'change' : 'changes'} to save:` : 'A new item:'), diffTable(changes));
        bar.hidden = true;
        back.hidden = false;
        save.textContent = base ? `Save ${changes.length === 1 ? 'this change' : `these ${changes.length} changes`}` : 'Save this item';
        state = value;
    }
    function edit(value) {
        state = 'edit';
        bar.hidden = false;
        back.hidden = true;
        save.hidden = false;
        save.textContent = 'Review changes';
        mode === 'json' ? showJson(value) : showForm(value);
    }

    /* Somebody changed the item: what they did, and our changes upon it. */
    function conflict(theirs, mine) {
        theirs = bare(theirs);
        if (!theirs) {
            fill(note, 'Somebody deleted this item meanwhile. Nothing was saved. To create it again, use Duplicate.');
            edit(mine);
            return;
        }
        const rebased = bare(theirs);
        for (const name of Object.keys({ ...base, ...mine }))
            if (!equal(base?.[name], mine[name]))
                mine[name] === undefined ? delete rebased[name] : (rebased[name] = mine[name]);
        const changes = diff(base || {}, theirs);
        const both = Object.keys({ ...base, ...mine }).filter((name) => !equal(base?.[name], mine[name]) && !equal(base?.[name], theirs[name]) && !equal(theirs[name], mine[name]));
        base = theirs;
        bar.hidden = true;
        fill(place, h('div.hint.warn', h('strong', 'Not saved: somebody changed this item meanwhile.'), ' Nothing of theirs was overwritten.'),
            h('h3', 'What they changed'), diffTable(changes, 'As you read it', 'As it is now'),
            both.length > 0 && h('p.warn-text', `You both changed ${both.join(', ')}: saving your version replaces theirs there.`),
            h('div.bar', button('Take theirs', () => edit(theirs)), button('My changes upon theirs', () => edit(rebased), { class: 'primary' })));
        save.hidden = back.hidden = true; /* what was reviewed was a change to what is not there any more */
    }

    async function commit() {
        if (state === 'edit') {
            const value = attempt(read);
            if (value)
                review(value);
            return false;
        }
        const value = state, made = saveRequest(table, base, value);
        try {
            const answer = await ctx.db(made.operation, made.request);
            toast(base ? 'Saved.' : 'The item is stored.', 'good');
            done(answer.Attributes || value);
            return true;
        } catch (problem) {
            if (problem.code !== 'ConditionalCheckFailedException')
                throw problem;
            if (!base) {
                fill(note, 'There is an item with this key already. Nothing was saved.');
                edit(value);
            } else {
                conflict(problem.item, value);
            }
            return false;
        }
    }

    async function remove() {
        const p = placeholders(), request = { TableName: table.TableName, Key: keyOf(table, base), ConditionExpression: unchanged(table, base, p, []), ReturnValuesOnConditionCheckFailure: 'ALL_OLD' };
        const yes = await confirm({ title: 'Delete this item?', text: h('code', cellText({ M: keyOf(table, base) }, 300)), run: async () => {
            const other = new Error('Somebody changed the item meanwhile, so it was not deleted. Close it and look again.');
            if (Object.keys(base).length > CONDITIONS_MAX) { /* more than a condition compares */
                const { Item: now } = await ctx.db('GetItem', { TableName: table.TableName, Key: request.Key, ConsistentRead: true });
                if (!now || !sameItem(now, base))
                    throw other;
            }
            try {
                await ctx.db('DeleteItem', p.into(request));
            } catch (problem) {
                if (problem.code === 'ConditionalCheckFailedException')
                    throw other;
                throw problem;
            }
        } });
        if (yes) {
            toast('The item is deleted.', 'good');
            close();
            done(null);
        }
    }

    const title = isNew ? `New item in ${table.TableName}` : keys.map((k) => cellText(base[k], 40)).join('  ·  ');
    await dialog({
        title, wide: true, unsaved, body: [bar, note, place],
        actions: [{ text: 'Close' }, { text: 'Back' }, { text: 'Review changes', kind: 'primary', disabled: ctx.readOnly, run: commit }].map((one, i) => (i === 1 ? { ...one, run: () => (edit(state), false) } : one)),
        onopen: (opened) => {
            close = opened.close;
            [, back, save] = opened.buttons;
            back.hidden = true;
            showForm(start);
            if (!isNew)
                fill(size, `${bytesText(itemSize(start))} of 400 KiB`);
            (place.querySelector('.value-of :is(textarea, input):not([readonly])') || opened.buttons[0]).focus();
        },
    });
    return sameItem(base, item);
}

/* ---- several items ---- */

/* Ask for a change to one attribute of many items; gives {update(item) -> request parts} or undefined. */
export function askBulkEdit(n) {
    let value = editValue({ S: '' }, 'the value', 1), act = 'set';
    const name = h('input', { type: 'text', required: true, autocomplete: 'off', spellcheck: 'false', autofocus: true }), box = h('div.attribute', h('div.head', value.type), value.node);
    return dialog({
        title: `Edit ${many(n, 'item')}`, body: [
            h('div.fields', field('What', select([['set', 'Set an attribute'], ['remove', 'Remove an attribute']], act, (v) => { act = v; box.hidden = v !== 'set'; })), field('Attribute', name)), box,
            h('p.muted', 'Each item is changed by itself, and only if it still exists.')],
        actions: [{ text: 'Cancel' }, { text: `Change ${many(n, 'item')}`, kind: 'primary', run: () => ({ act, name: name.value, value: act === 'set' ? value.get() : null }) }],
    });
}

export { plainItem };
