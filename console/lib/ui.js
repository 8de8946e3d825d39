/*
 * lib/ui.js: what every view is made of: states, dialogs, notices, menus, tabs, forms.
 */
import { add, fill, h, newId, whenReleased } from './dom.js';
import { Problem, server } from './client.js';

/* ---- states ---- */

export const loading = (text = 'Loading…') => h('div.state', { role: 'status' }, h('span.spinner', { 'aria-hidden': 'true' }), text);

export const empty = (title, text, ...actions) =>
    h('div.state.empty', h('strong', title), text && h('p', text), actions.length > 0 && h('div.actions', actions));

/* What to do about a problem, by its code. */
const ADVICE = {
    Unreachable: 'Is holdfast serve still running? The page tries again by itself.',
    ResourceNotFoundException: 'It may have been deleted or renamed meanwhile.',
    AccessDeniedException: 'This key, or a read-only server, may not do this.',
    ResourceInUseException: 'Something else works on it right now. Try again in a moment.',
    ProvisionedThroughputExceededException: 'Too many requests for its capacity. Try again in a moment.',
    ThrottlingException: 'Too many requests. Try again in a moment.',
    RequestLimitExceeded: 'Too many requests. Try again in a moment.',
};

export function problemNode(problem, retry) {
    return h('div.state.problem', { role: 'alert' },
        h('strong', problem.code && problem.code !== 'Unreachable' ? problem.code : problem instanceof Problem ? 'Not reachable' : 'This did not work'),
        h('p', problem.message),
        (ADVICE[problem.code] || problem.mayHaveHappened) && h('p.muted', problem.mayHaveHappened && problem.code !== 'Unreachable' ? 'It may have been done all the same: look before you repeat it. ' : '', ADVICE[problem.code] || ''),
        retry && h('div.actions', h('button', { type: 'button', onclick: retry }, 'Try again')));
}

/* Show `work()` in `place`: loading, then what it gives (nodes, or nothing), or the problem. */
export async function load(place, work, { signal, text } = {}) {
    const wait = setTimeout(() => whenReleased(place, () => fill(place, loading(text))), place.childNodes.length ? 250 : 0);
    try {
        const nodes = await work();
        clearTimeout(wait);
        await new Promise((done) => whenReleased(place, done));
        if (nodes && !signal?.aborted)
            fill(place, nodes);
    } catch (problem) {
        clearTimeout(wait);
        if (problem.code === 'Canceled' || signal?.aborted)
            return;
        if (!(problem instanceof Problem))
            console.error(problem);
        fill(place, problemNode(problem, () => load(place, work, { signal, text })));
    }
}

/* ---- notices ---- */

let shelf;

/* A short notice. kind: "info", "good", "bad". Bad ones stay until they are closed. */
export function toast(text, kind = 'info') {
    shelf ||= document.body.appendChild(h('div.toasts', { 'aria-live': 'polite', role: 'status' }));
    const node = h(`div.toast.${kind}`, h('span', text),
        h('button.quiet', { type: 'button', 'aria-label': 'Close this notice', onclick: () => node.remove() }, '×'));
    add(shelf, node);
    while (shelf.childElementCount > 4)
        shelf.firstChild.remove();
    if (kind !== 'bad')
        setTimeout(() => node.remove(), 6000);
}

export const toastProblem = (problem) => problem.code !== 'Canceled' && toast(`${problem.code && problem.code !== 'Unreachable' ? problem.code + ': ' : ''}${problem.message}`, 'bad');

/* ---- dialogs ---- */

/* What was typed into a part of the page; not the names that confirm something. */
const typedIn = (place) => [...place.querySelectorAll('input:not([type=checkbox], [type=radio], [data-confirms]), textarea')].map((e) => e.value).join('\0');

const drafts = new Set(); /* of open dialogs: is something in it that is not saved? */

const leaving = () => dialog({ title: 'Discard what you typed?', body: h('p', 'It is not saved.'),
    actions: [{ text: 'Keep editing' }, { text: 'Discard', kind: 'danger', value: true }], onopen: ({ buttons }) => buttons[0].focus() });

/*
 * A modal dialog. body: nodes; actions: [{text, kind, value, run}]; run may be async, and what it
 * throws is shown in the dialog, which stays. The promise gives the value of the action, or
 * undefined after Escape. An action with neither run nor value, Escape and × leave it: they ask
 * first if something was typed, or if `unsaved()` says so.
 */
export function dialog({ title, body, actions = [], wide = false, onopen, unsaved }) {
    return new Promise((resolve) => {
        const heading = newId('d'), note = h('div.note', { role: 'alert' }), before = document.activeElement;
        let result, began, asked = false;
        const draft = () => (unsaved ? unsaved() : typedIn(form) !== began);
        const leave = async () => {
            if (asked)
                return;
            asked = true;
            if (!draft() || await leaving())
                node.close();
            asked = false;
        };
        const buttons = actions.map((action, i) => h('button', {
            type: i === actions.length - 1 ? 'submit' : 'button', class: action.kind || '', disabled: action.disabled,
            onclick: async (event) => {
                event.preventDefault();
                if (!action.run && action.value === undefined)
                    return void leave();
                if (action.run && !form.reportValidity())
                    return;
                note.replaceChildren();
                buttons.forEach((b) => { b.dataset.was = b.disabled ? '1' : ''; b.disabled = true; });
                try {
                    result = action.run ? await action.run() : action.value;
                    if (result !== false)
                        node.close();
                } catch (problem) {
                    fill(note, problem.code && problem.code !== 'Unreachable' ? `${problem.code}: ` : '', problem.message);
                } finally {
                    buttons.forEach((b) => { b.disabled = b.dataset.was === '1'; });
                }
            } }, action.text));
        const form = h('form', { method: 'dialog', onsubmit: (e) => e.preventDefault() },
            h('header', h('h2', { id: heading }, title), h('button.quiet', { type: 'button', 'aria-label': 'Close', onclick: leave }, '×')),
            h('div.body', body), note, h('footer', buttons));
        const node = h('dialog', { 'aria-labelledby': heading, class: wide ? 'wide' : '' }, form);
        const held = (event) => { /* Escape, and what a browser has instead of it */
            if (draft()) {
                event.preventDefault();
                leave();
            }
        };
        node.addEventListener('cancel', (event) => event.target === node && held(event));
        node.addEventListener('keydown', (event) => event.key === 'Escape' && !event.isComposing && held(event));
        node.addEventListener('close', () => {
            drafts.delete(draft);
            node.remove();
            before?.isConnected && before.focus();
            resolve(result);
        });
        document.body.append(node);
        node.showModal();
        (node.querySelector('[autofocus]') || node.querySelector('.body input, .body select, .body textarea') || buttons.at(-1))?.focus();
        onopen?.({ node, buttons, close: () => node.close() });
        began = typedIn(form);
        drafts.add(draft);
    });
}

/* Ask before something that cannot be undone. `typed`: the name to type first. Gives true or undefined. */
export function confirm({ title, text, typed, action = 'Delete', run }) {
    const input = typed && h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', autofocus: true, 'aria-label': `Type ${typed} to confirm`, 'data-confirms': '' });
    return dialog({
        title, body: [h('p', text), typed && h('label.field', h('span', 'Type ', h('code', typed), ' to confirm'), input)],
        actions: [{ text: 'Keep' }, { text: action, kind: 'danger', disabled: !!typed, run: async () => (run && (await run()), true) }],
        onopen: ({ buttons }) => input?.addEventListener('input', () => { buttons[1].disabled = input.value !== typed; }),
    });
}

/* ---- small parts ---- */

export const button = (text, onclick, props = {}) => h('button', { type: 'button', onclick, ...props }, text);

/* A button for what writes: disabled in read-only mode, and says so. */
export const writeButton = (text, onclick, props = {}) => button(text, onclick, server.info?.read_only
    ? { ...props, disabled: true, title: 'The server is read-only' } : props);

export const badge = (text, kind = '') => h(`span.badge${kind ? '.' + kind : ''}`, text);

export function field(label, control, hint) {
    const id = control.id || (control.id = newId('f')), help = hint && newId('h');
    if (help)
        control.setAttribute('aria-describedby', help);
    return h('div.field', h('label', { for: id }, label), control, hint && h('small', { id: help }, hint));
}

export const select = (options, value, onchange, props = {}) => h('select', { ...props, value, onchange: onchange && ((e) => onchange(e.target.value)) },
    options.map((one) => (Array.isArray(one) ? h('option', { value: one[0] }, one[1]) : h('option', one))));

export const check = (label, checked, onchange, props = {}) => h('label.check', h('input', { ...props, type: 'checkbox', checked, onchange: onchange && ((e) => onchange(e.target.checked)) }), label);

/* Facts: [[name, value], ...] */
export const facts = (rows) => h('dl.facts', rows.filter((row) => row && row[1] !== undefined && row[1] !== null).map(([name, value]) => [h('dt', name), h('dd', value)]));

export const panel = (title, ...children) => h('section.panel', title && h('h2', title), children);

/* Tabs that are links: [[text, href, current]] */
export const tabs = (list, label = 'Sections') => h('nav.tabs', { 'aria-label': label },
    list.filter(Boolean).map(([text, to, current]) => h('a', { href: to, 'aria-current': current ? 'page' : null }, text)));

/* A button with a list of actions: [[text, fn, {danger, disabled}]] */
export function menu(label, items, props = {}) {
    const list = h('div.menu', { popover: '', role: 'menu' });
    const opener = h('button', { type: 'button', 'aria-haspopup': 'menu', 'aria-expanded': 'false', ...props }, label);
    const place = () => {
        const box = opener.getBoundingClientRect();
        list.style.top = `${Math.min(box.bottom + 4, innerHeight - list.offsetHeight - 8)}px`;
        list.style.left = `${Math.max(8, Math.min(box.left, innerWidth - list.offsetWidth - 8))}px`;
    };
    opener.addEventListener('click', () => {
        if (list.matches(':popover-open'))
            return list.hidePopover();
        fill(list, (typeof items === 'function' ? items() : items).filter(Boolean).map(([text, run, more = {}]) =>
            run === undefined ? h('div.menu-title', { role: 'presentation' }, text)
                : h('button', { type: 'button', role: 'menuitem', class: more.danger ? 'danger' : '', disabled: more.disabled, title: more.title,
                    onclick: () => { list.hidePopover(); run(); } }, text)));
        if (!list.isConnected)
            opener.after(list);
        list.showPopover();
        place();
        list.querySelector('button:not([disabled])')?.focus();
    });
    list.addEventListener('toggle', (e) => opener.setAttribute('aria-expanded', String(e.newState === 'open')));
    list.addEventListener('keydown', (e) => {
        const all = [...list.querySelectorAll('button:not([disabled])')], at = all.indexOf(document.activeElement);
        const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[e.key];
        if (next !== undefined) {
            e.preventDefault();
            all[(next + all.length) % all.length]?.focus();
        } else if (e.key === 'Escape' || e.key === 'Tab') {
            list.hidePopover();
            opener.focus();
        }
    });
    return h('span.menu-of', opener);
}

export async function copy(text, what = 'Copied') {
    try {
        await navigator.clipboard.writeText(text);
        toast(`${what}.`, 'good');
    } catch { /* a page without a secure context has no clipboard */
        const area = h('textarea', { readOnly: true, rows: 12, value: text, 'aria-label': 'Text to copy' });
        await dialog({ title: 'Copy this text', body: area, actions: [{ text: 'Close' }], onopen: () => area.select() });
    }
}

export function download(name, text, type = 'application/json') {
    const url = URL.createObjectURL(new Blob(Array.isArray(text) ? text : [text], { type }));
    const link = h('a', { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* Code with a button that copies it. */
export const code = (text, label = 'Copy') => h('div.code', h('pre', { tabindex: '0' }, text), button(label, () => copy(text), { class: 'small' }));

/* ---- long actions ---- */

let tray, running = 0;
addEventListener('beforeunload', (e) => (running > 0 || [...drafts].some((draft) => draft())) && e.preventDefault()); /* what is not done yet would not be */

/*
 * A long action is a row with progress and cancel, which stays while the user goes elsewhere:
 * job("Delete 300 items", async (step, signal) => { step(10, 300); ... return "300 deleted" }).
 */
export async function job(title, work) {
    tray ||= document.body.appendChild(h('section.jobs', { 'aria-label': 'Actions' }));
    const abort = new AbortController(), bar = h('progress', { max: 1, 'aria-label': title }), text = h('span.muted', 'starting…');
    const end = button('Cancel', () => abort.abort(), { class: 'small' });
    const row = h('div.job', h('div', h('strong', title), text), bar, end);
    add(tray, row);
    const from = performance.now();
    const finish = (kind, said) => {
        row.classList.add(kind);
        fill(text, said);
        bar.remove();
        fill(end, 'Close');
        end.addEventListener('click', () => row.remove());
        if (kind === 'good')
            setTimeout(() => row.remove(), 8000);
    };
    let done = 0;
    const stays = () => `Canceled after ${done.toLocaleString('en')}. What was done stays.`;
    running++;
    try {
        const said = await work((now, of, note) => {
            done = now;
            if (of) {
                bar.max = of;
                bar.value = now;
            }
            fill(text, note || `${now.toLocaleString('en')}${of ? ` of ${of.toLocaleString('en')}` : ''}`,
                of && now > 0 && now < of && performance.now() - from > 3000 ? ` · ${Math.ceil((performance.now() - from) / now * (of - now) / 1000)} s left` : '');
            if (abort.signal.aborted)
                throw new Problem('Canceled', stays());
        }, abort.signal);
        finish('good', said || 'done');
        return true;
    } catch (problem) {
        finish(problem.code === 'Canceled' ? 'canceled' : 'bad', problem.code === 'Canceled' ? stays() : problem.code ? `${problem.code}: ${problem.message}` : problem.message);
        return false;
    } finally {
        running--;
    }
}
