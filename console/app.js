/*
 * app.js: the frame: which views there are, the menu, the head, keys, the state of the connection.
 *
 * A view is a module `export default { title, async open(root, params, ctx) { ...; return close } }`,
 * loaded when it is opened first. README.md says what ctx has.
 */
import { emit, on } from './lib/bus.js';
import { add, fill, h } from './lib/dom.js';
import { api, db, getKey, method, Problem, reach, server, setKey } from './lib/client.js';
import { href, match, parse } from './lib/router.js';
import { reconnect, startStream } from './lib/stream.js';
import { setUtc, zone } from './lib/time.js';
import { badge, button, dialog, field, loading, problemNode, toast } from './lib/ui.js';

const ROUTES = [
    { path: '/', view: 'overview' },
    { path: '/tables', view: 'tables' },
    { path: '/tables/:table', view: 'table' },
    { path: '/tables/:table/items', view: 'items' },
    { path: '/tables/:table/query', view: 'query' },
    { path: '/tables/:table/entities', view: 'entities' },
    { path: '/tables/:table/stream', view: 'streams' },
    { path: '/tables/:table/load', view: 'load' },
    { path: '/partiql', view: 'partiql' },
    { path: '/streams', view: 'streams' },
    { path: '/backups', view: 'backups' },
    ...['patterns', 'outbox', 'events', 'locks', 'counters', 'once', 'limits', 'kv', 'records', 'consumers', 'live', 'insight', 'tests', 'remote'].map((view) => ({ path: `/${view}`, view })),
];

/* [group, [[text, path, when(info)], ...]] */
const MENU = [
    ['Overview', [['Overview', '/']]],
    ['Data', [['Tables', '/tables'], ['PartiQL', '/partiql'], ['Streams', '/streams'], ['Backups', '/backups']]],
    ['Patterns', [['All patterns', '/patterns'], ['Outbox', '/outbox'], ['Events', '/events'], ['Locks', '/locks'], ['Counters', '/counters'], ['Do-once', '/once'],
        ['Limits', '/limits'], ['Keys and values', '/kv'], ['Records', '/records'], ['Stream consumers', '/consumers']]],
    ['Insight', [['Live requests', '/live'], ['Hot and large', '/insight']]],
    ['Server', [['For tests', '/tests'], ['Remote', '/remote']]],
];

const view = h('main#view', { tabindex: '-1' });
const head = h('header#head'), banner = h('div#banner', { role: 'status', 'aria-live': 'polite' }), side = h('nav#menu', { 'aria-label': 'Views' }), foot = h('div#foot');
let open = null; /* {close, abort, offs, path} of the view that is shown */

/* ---- theme ---- */

function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem('holdfast.theme', theme);
    emit('theme', theme);
    drawFoot();
}

/* ---- the menu ---- */

function drawMenu() {
    const path = '/' + parse(location.hash).parts[0] || '/', here = path === '/undefined' ? '/' : path;
    fill(side, MENU.map(([group, entries]) => {
        const shown = entries.filter(([, , when]) => !when || when(server.info || {}));
        return shown.length > 0 && h('section', group !== 'Overview' && h('h2', group),
            h('ul', shown.map(([text, to]) => h('li', h('a', { href: href(to), 'aria-current': to === here ? 'page' : null }, text)))));
    }));
}

function drawFoot() {
    const info = server.info || {}, theme = document.documentElement.dataset.theme;
    fill(foot,
        h('div.server', h('span', { class: server.up ? 'dot good' : 'dot bad', 'aria-hidden': 'true' }),
            h('span', info.version ? `holdfast ${info.version}` : 'holdfast', h('small', location.host)),
            info.read_only && badge('read-only', 'warn'), info.database?.kind === 'remote' && badge('remote', 'info')),
        info.database?.kind === 'remote' && h('small.muted', info.database.url),
        h('div.switches',
            h('label', 'Theme', h('select', { value: theme, onchange: (e) => setTheme(e.target.value) }, ['auto', 'light', 'dark'].map((t) => h('option', t)))),
            h('label', 'Times', h('select', { value: zone.utc ? 'UTC' : 'local', onchange: (e) => setUtc(e.target.value === 'UTC') }, ['local', 'UTC'].map((t) => h('option', t))))),
        server.access === 'keys' && button(getKey() ? 'Change key' : 'Enter key', askKey, { class: 'small' }));
}

function drawBanner() {
    fill(banner);
    banner.hidden = server.up;
    if (!server.up)
        add(banner, h('span', 'The server is away. The page tries to reach it and goes on when it is back.'), button('Try now', begin, { class: 'small' }));
}

/* ---- keys ---- */

let asking = null;

function askKey(problem) {
    asking ||= keyDialog(problem).finally(() => { asking = null; });
    return asking;
}

async function keyDialog(problem) {
    const key = getKey() || {};
    const text = (name, value, type = 'text', more = {}) => h('input', { type, name, value: value || '', autocomplete: 'off', spellcheck: 'false', ...more });
    const id = text('id', key.id, 'text', { required: true, autofocus: true }), secret = text('secret', '', 'password', { required: true }), token = text('token', '', 'password');
    await dialog({
        title: 'Key of this server',
        body: [h('p', 'The server takes signed requests only. The key stays in this tab: each request is signed here, and the secret is never sent.'),
            problem?.message && key.id && h('p.problem-text', problem.message),
            field('Access key id', id), field('Secret access key', secret), field('Session token', token, 'Only for temporary keys.')],
        actions: [{ text: 'Later' }, { text: 'Use this key', kind: 'primary', run: async () => {
            const before = getKey();
            setKey({ id: id.value.trim(), secret: secret.value.trim(), token: token.value.trim() || undefined });
            try {
                server.access = 'keys';
                await loadInfo();
                await db('ListTables', { Limit: 1 });
            } catch (error) {
                if (error.code !== 'AccessDeniedException') {
                    setKey(before);
                    throw error;
                }
            }
        } }],
    });
    reconnect();
    drawFoot();
    show();
}

/* ---- the server ---- */

/* Without a key, the server says no more than whether it wants one. */
async function loadInfo() {
    const was = server.info;
    const info = await api('/console/api/info', undefined, { unsigned: !getKey() });
    server.access = info.access || 'open';
    server.region = info.region || server.region;
    server.info = { methods: [], ...info };
    if (JSON.stringify(was) !== JSON.stringify(server.info)) {
        drawMenu();
        drawFoot();
    }
}

let retry = 0, pause = 500;

async function begin() {
    clearTimeout(retry);
    try {
        await loadInfo();
        pause = 500;
        reach(true);
    } catch (problem) {
        if (problem.code === 'HF_DENIED')
            server.access = 'keys'; /* and ours is not one of them: the dialog is open */
        if (problem.code === 'Unreachable') {
            retry = setTimeout(begin, pause);
            pause = Math.min(pause * 2, 5000);
        }
        return problem;
    }
}

/* ---- views ---- */

function setHead({ title, crumbs = [], actions = [], tabs: below }) {
    document.title = `${title} – holdfast`;
    fill(head,
        h('div.row', button('☰', () => document.body.classList.toggle('menu-open'), { class: 'quiet burger', 'aria-label': 'Menu' }),
            h('div.titles', crumbs.length > 0 && h('nav.crumbs', { 'aria-label': 'Path' }, crumbs.map(([text, to]) => [h('a', { href: to }, text), h('span', { 'aria-hidden': 'true' }, '/')])),
                h('h1', title)),
            h('div.actions', actions)),
        below || []);
}

async function show() {
    const { parts, query } = parse(location.hash), mine = { abort: new AbortController(), offs: [], close: null };
    document.body.classList.remove('menu-open');
    const old = open;
    open = mine;
    if (old)
        shut(old);
    drawMenu();
    const found = match(ROUTES, parts);
    if (!found) {
        setHead({ title: 'No such view' });
        fill(view, h('div.view', { 'data-ready': '1' }, problemNode(new Problem('NotFound', `There is no view ${location.hash}.`)), h('p.center', h('a', { href: '#/' }, 'Go to the overview'))));
        return;
    }
    fill(view, loading());
    try {
        const module = (await import(`./views/${found.route.view}.js`)).default;
        if (open !== mine)
            return;
        setHead({ title: module.title });
        const root = h('div.view', { 'data-view': found.route.view });
        fill(view, root);
        const close = await module.open(root, { ...query, ...found.params }, context(mine, parts, query));
        mine.close = close;
        if (open !== mine)
            shut(mine);
        else
            root.dataset.ready = '1';
    } catch (problem) {
        if (open !== mine || problem.code === 'Canceled')
            return;
        if (!(problem instanceof Problem))
            console.error(problem);
        fill(view, h('div.view', { 'data-ready': '1' }, problemNode(problem, show)));
    }
}

function shut(one) {
    one.abort.abort();
    one.offs.splice(0).forEach((off) => off());
    try {
        one.close?.();
    } catch (error) {
        console.error(error);
    }
    one.close = null;
}

function context(mine, parts, query) {
    const signal = mine.abort.signal;
    return {
        parts, query, signal,
        get info() { return server.info || {}; },
        get readOnly() { return !!server.info?.read_only; },
        db: (operation, request, options) => db(operation, request, { signal, ...options }),
        api: (path, body, options) => api(path, body, { signal, ...options }),
        method: (name, args, options) => method(name, args, { signal, ...options }),
        on(event, fn) {
            if (open === mine)
                mine.offs.push(on(event, fn));
        },
        head: (parts) => open === mine && setHead(parts),
        reopen: () => open === mine && show(),
        /* Write what the view shows into the URL, without opening it anew. */
        setQuery(values) {
            if (open === mine)
                history.replaceState(null, '', href('/' + parts.map(encodeURIComponent).join('/'), values));
        },
    };
}

/* ---- start ---- */

document.documentElement.dataset.theme = localStorage.getItem('holdfast.theme') || 'auto';
add(document.body, h('a.skip', { href: '#view', onclick: (e) => { e.preventDefault(); view.focus(); } }, 'Skip to the view'),
    h('aside#side', h('a.brand', { href: '#/' }, 'holdfast'), side, foot),
    h('div#shade', { onclick: () => document.body.classList.remove('menu-open') }), h('div#page', banner, head, view));
drawMenu();
drawFoot();
drawBanner();
on('away', () => { drawBanner(); drawFoot(); clearTimeout(retry); retry = setTimeout(begin, pause); });
on('doubt', begin);
on('back', () => {
    drawBanner();
    drawFoot();
    begin(); /* it may be another version, or have other keys */
    reconnect();
    toast('The server is back.', 'good');
});
on('key', (problem) => askKey(problem));
addEventListener('hashchange', show);
addEventListener('keydown', (e) => {
    if (e.key === 'Escape')
        document.body.classList.remove('menu-open');
    if (e.key === '/' && !e.ctrlKey && !e.metaKey && !/INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName)) {
        const search = document.querySelector('#view input[type=search]');
        if (search) {
            e.preventDefault();
            search.focus();
        }
    }
});
const first = match(ROUTES, parse(location.hash).parts);
if (first) /* while the server is asked what it is; show() says what is wrong with it */
    import(`./views/${first.route.view}.js`).catch(() => { });
const problem = await begin();
if (problem && problem.code === 'Unreachable')
    fill(view, problemNode(problem));
if (server.access === 'keys' && (!getKey() || asking)) {
    setHead({ title: 'Key needed' });
    await askKey();
} else {
    show();
}
startStream();
