/*
 * lib/router.js: where we are is in the hash, so that a view can be shared by its URL.
 *
 *     #/tables/orders/items?index=by_day     path and query; parts of the path are escaped
 */

export function parse(hash) {
    const [path, query] = hash.replace(/^#/, '').split(/\?(.*)/s);
    let parts;
    try {
        parts = path.split('/').filter(Boolean).map(decodeURIComponent);
    } catch {
        parts = ['?']; /* no view has this name */
    }
    return { parts, query: Object.fromEntries(new URLSearchParams(query || '')) };
}

/* href("/tables", "a b", "items", { index }) -> "#/tables/a%20b/items?index=..." */
export function href(...parts) {
    const query = typeof parts.at(-1) === 'object' ? parts.pop() : {};
    const path = parts.map((part, i) => (i === 0 ? part : '/' + encodeURIComponent(part))).join('');
    const set = Object.entries(query).filter(([, v]) => v !== undefined && v !== null && v !== '' && v !== false);
    return '#' + path + (set.length ? '?' + new URLSearchParams(set) : '');
}

export function go(...parts) {
    location.hash = href(...parts);
}

/* The route of `routes` ([pattern, ...]) that `parts` match, with the parameters that it names. */
export function match(routes, parts) {
    for (const route of routes) {
        const wanted = route.path.split('/').filter(Boolean), params = {};
        if (wanted.length === parts.length && wanted.every((part, i) => part[0] === ':'
            ? ((params[part.slice(1)] = parts[i]), true) : part === parts[i]))
            return { route, params };
    }
    return null;
}
