/*
 * lib/table.js: a table of any length. Only the rows that are in sight are in the page.
 *
 *     const table = grid({ label, name, columns, rows, key, open, more, selected })
 *     table.node, table.setRows(rows), table.setColumns(columns), table.selection()
 *
 * columns: [{id, title, cell(row) -> nodes or text, text(row) for its title, sort(row), width, right, hidden}]
 * key(row): its identity. open(row): Enter or a click. more(): loads further rows when the end comes
 * into sight, as long as setRows(rows, true) says that there are. name: remembers the columns that
 * the user chose. selected(set): rows can be selected; called when they change.
 */
import { fill, h, throttle, whenReleased } from './dom.js';
import { check, button } from './ui.js';

const ROW = 32, EXTRA = 12;

export function grid({ label, name, columns, rows = [], key = (row) => row, open, more, selected, sortable = true, height }) {
    let order = null, hasMore = false, loading = false, active = 0, hidden = remembered(), shown = [], from = -1, to = -1, chosen = new Map();
    const head = h('thead'), body = h('tbody'), top = h('tbody', { 'aria-hidden': 'true' }), bottom = h('tbody', { 'aria-hidden': 'true' });
    const spaceTop = h('td'), spaceBottom = h('td');
    top.append(h('tr', spaceTop));
    bottom.append(h('tr', spaceBottom));
    const table = h('table', { role: 'grid', 'aria-label': label, 'aria-multiselectable': selected ? 'true' : null }, head, top, body, bottom);
    const scroller = h('div.grid', { tabindex: '-1', class: height ? 'fixed' : '', style: height ? { 'max-height': height } : {} }, table);
    const foot = h('div.grid-foot', { role: 'status' });
    const node = h('div.grid-box', scroller, foot);

    function remembered() {
        try {
            return new Set(JSON.parse(localStorage.getItem(`holdfast.columns.${name}`)) || columns.filter((c) => c.hidden).map((c) => c.id));
        } catch {
            return new Set();
        }
    }

    const visible = () => columns.filter((c) => !hidden.has(c.id));

    function drawHead() {
        const cells = visible().map((c) => {
            const sorted = order?.id === c.id;
            const title = sortable && c.sort ? h('button.quiet', { type: 'button', onclick: () => sortBy(c) }, c.title, sorted ? (order.down ? ' ↓' : ' ↑') : '') : c.title;
            return h('th', { scope: 'col', class: c.right ? 'right' : '', 'aria-sort': sorted ? (order.down ? 'descending' : 'ascending') : null, style: c.width ? { width: c.width } : {} }, title);
        });
        if (selected)
            cells.unshift(h('th.pick', { scope: 'col' }, h('input', { type: 'checkbox', 'aria-label': 'Select all rows that are loaded', checked: shown.length > 0 && chosen.size >= shown.length,
                onchange: (e) => { chosen = e.target.checked ? new Map(shown.map((row) => [key(row), row])) : new Map(); draw(true); selected(chosen); } })));
        fill(head, h('tr', cells));
        const span = cells.length;
        spaceTop.colSpan = span;
        spaceBottom.colSpan = span;
    }

    function sortBy(column) {
        order = order?.id !== column.id ? { id: column.id, sort: column.sort, down: false } : order.down ? null : { ...order, down: true };
        sort();
        drawHead();
        draw(true);
    }

    function sort() {
        shown = rows;
        if (!order)
            return;
        const value = new Map(rows.map((row) => [row, order.sort(row)])), sign = order.down ? -1 : 1;
        shown = [...rows].sort((a, b) => {
            const x = value.get(a), y = value.get(b);
            if (x === y || x === undefined || y === undefined || x === null || y === null)
                return x === y ? 0 : x === undefined || x === null ? 1 : -1;
            return sign * (typeof x === 'object' && x.compare ? x.compare(y) : x < y ? -1 : 1);
        });
    }

    function rowNode(row, i) {
        const id = key(row), on = chosen.has(id);
        const cells = visible().map((c) => {
            const content = c.cell ? c.cell(row) : row[c.id];
            const td = h('td', { class: (c.right ? 'right ' : '') + (c.class || '') }, content);
            if (typeof content === 'string' && content.length > 24)
                td.title = c.text ? c.text(row) : content;
            return td;
        });
        if (selected)
            cells.unshift(h('td.pick', h('input', { type: 'checkbox', tabindex: '-1', checked: on, 'aria-label': `Select row ${i + 1}`, onclick: (e) => { e.stopPropagation(); pick(i, e.shiftKey); } })));
        return h('tr', { 'data-i': i, 'aria-rowindex': i + 2, 'aria-selected': selected ? String(on) : null, tabindex: i === active ? '0' : '-1', class: open ? 'opens' : '' }, cells);
    }

    let lastPicked = 0;
    function pick(i, range) {
        const on = !chosen.has(key(shown[i]));
        for (let n = range ? Math.min(i, lastPicked) : i; n <= (range ? Math.max(i, lastPicked) : i); n++)
            if (on)
                chosen.set(key(shown[n]), shown[n]);
            else
                chosen.delete(key(shown[n]));
        lastPicked = i;
        draw(true);
        drawHead();
        selected(chosen);
    }

    function draw(force) {
        /* Where the page scrolls and not the table, the part in sight is that of the window. */
        const box = scroller.getBoundingClientRect(), inside = scroller.scrollHeight > scroller.clientHeight + 1;
        const offset = inside ? scroller.scrollTop : Math.max(0, -box.top), room = inside ? scroller.clientHeight : innerHeight;
        const first = Math.max(0, Math.floor(offset / ROW) - EXTRA), last = Math.min(shown.length, Math.ceil((offset + room) / ROW) + EXTRA);
        if (force || first !== from || last !== to) {
            const focused = body.contains(document.activeElement) && document.activeElement.tagName === 'TR';
            from = first;
            to = last;
            spaceTop.style.height = `${first * ROW}px`;
            spaceBottom.style.height = `${(shown.length - last) * ROW}px`;
            top.hidden = first === 0;
            bottom.hidden = last === shown.length;
            fill(body, shown.slice(first, last).map((row, i) => rowNode(row, first + i)));
            table.setAttribute('aria-rowcount', hasMore ? -1 : shown.length + 1);
            if (focused)
                body.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
            else if (shown.length && (active < first || active >= last)) /* one row can always be reached by Tab */
                body.firstElementChild?.setAttribute('tabindex', '0');
        }
        if (hasMore && bySelf && !loading && more && shown.length - last < 40 && node.isConnected)
            loadMore();
    }

    async function loadMore() {
        loading = true;
        fill(foot, 'Loading more…');
        try {
            await more();
        } finally {
            loading = false;
            footer();
        }
    }

    let note = '', bySelf = true;
    function footer() {
        fill(foot, note, hasMore && more ? [' · ', button('Load more', () => loadMore(), { class: 'small' })] : '');
    }

    function focusRow(i) {
        active = Math.max(0, Math.min(shown.length - 1, i));
        const inside = scroller.scrollHeight > scroller.clientHeight + 1, y = active * ROW;
        if (inside && (y < scroller.scrollTop + ROW || y > scroller.scrollTop + scroller.clientHeight - 2 * ROW))
            scroller.scrollTop = y - scroller.clientHeight / 2;
        const at = scroller.getBoundingClientRect().top + ROW + y;
        if (!inside && (at < ROW || at > innerHeight - 2 * ROW))
            scrollBy(0, at - innerHeight / 2);
        draw(true);
        const row = body.querySelector(`tr[data-i="${active}"]`);
        row?.focus({ preventScroll: inside });
    }

    table.addEventListener('keydown', (e) => {
        if (e.target.tagName !== 'TR')
            return;
        const jump = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 }[e.key];
        if (jump) {
            e.preventDefault();
            focusRow(Number(e.target.dataset.i) + jump);
        } else if (e.key === 'Enter' && open) {
            e.preventDefault();
            open(shown[Number(e.target.dataset.i)]);
        } else if (e.key === ' ' && selected) {
            e.preventDefault();
            active = Number(e.target.dataset.i);
            pick(active, e.shiftKey);
        }
    });
    body.addEventListener('focusin', (e) => { /* drawn anew, the row that has the focus keeps it */
        if (e.target.tagName === 'TR')
            active = Number(e.target.dataset.i);
    });
    body.addEventListener('click', (e) => {
        const tr = e.target.closest('tr[data-i]');
        if (!tr || e.target.closest('a, button, input, summary, label') || String(getSelection()))
            return;
        active = Number(tr.dataset.i);
        open?.(shown[active]);
    });
    scroller.addEventListener('scroll', throttle(() => draw(), 16), { passive: true });
    const outer = throttle(() => node.isConnected ? draw() : stop(), 16);
    addEventListener('scroll', outer, { passive: true });
    addEventListener('resize', outer);
    const stop = () => {
        removeEventListener('scroll', outer);
        removeEventListener('resize', outer);
    };

    /* The rows; whether there are more to load; what the foot says; whether more are loaded when the end comes
       into sight, or only when somebody asks for them. */
    function setRows(next, moreToCome = false, said = '', automatic = true) {
        whenReleased(body, () => {
            rows = next;
            hasMore = moreToCome;
            bySelf = automatic;
            note = said;
            sort();
            footer();
            draw(true);
            requestAnimationFrame(() => draw());
        });
    }

    drawHead();
    setRows(rows);
    return {
        node, setRows,
        rows: () => rows,
        selection: () => [...chosen.values()],
        clearSelection: () => { chosen = new Map(); draw(true); drawHead(); selected?.(chosen); },
        setColumns: (next) => whenReleased(body, () => { columns = next; drawHead(); draw(true); }),
        focus: () => focusRow(active),
        /* A button that lets the user choose columns. */
        chooser: () => {
            const list = h('div.menu.columns', { popover: '' });
            const opener = button('Columns', () => {
                fill(list, columns.map((c) => check(c.title, !hidden.has(c.id), (on) => {
                    on ? hidden.delete(c.id) : hidden.add(c.id);
                    if (name)
                        localStorage.setItem(`holdfast.columns.${name}`, JSON.stringify([...hidden]));
                    drawHead();
                    draw(true);
                })));
                list.togglePopover();
                const box = opener.getBoundingClientRect();
                list.style.top = `${box.bottom + 4}px`;
                list.style.left = `${Math.max(8, Math.min(box.left, innerWidth - list.offsetWidth - 8))}px`;
                list.querySelector('input')?.focus();
            }, { 'aria-haspopup': 'dialog' });
            return h('span.menu-of', opener, list);
        },
    };
}
