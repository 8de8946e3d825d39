/*
 * lib/dom.js: building the page.
 *
 * h("button.primary#save", { onclick: save, disabled: true }, "Save") makes an element. Text is
 * always a text node, so data can never become markup: nothing in console/ uses innerHTML.
 */

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = new Set(['value', 'checked', 'selected', 'disabled', 'hidden', 'indeterminate', 'readOnly']);

export function add(to, ...children) {
    for (const child of children.flat(Infinity))
        if (child !== null && child !== undefined && child !== false)
            to.append(child instanceof Node ? child : String(child));
    return to;
}

function make(element, props, children) {
    for (const [name, value] of Object.entries(props || {})) {
        if (value === undefined || value === null)
            continue;
        if (name.startsWith('on'))
            element.addEventListener(name.slice(2), value);
        else if (name === 'class')
            element.classList.add(...String(value).split(' ').filter(Boolean));
        else if (name === 'style') /* by the object model: a style attribute is refused by the policy */
            for (const [key, text] of Object.entries(value))
                element.style.setProperty(key, text);
        else if (PROPERTIES.has(name))
            element[name] = value;
        else if (value === true)
            element.setAttribute(name, '');
        else if (value !== false)
            element.setAttribute(name, value);
    }
    add(element, children);
    if (props && 'value' in props && props.value !== undefined) /* a select has its options only now */
        element.value = props.value;
    return element;
}

function split(tag) {
    const [, name, rest] = /^([a-z0-9-]*)(.*)$/i.exec(tag);
    return [name || 'div', rest.match(/[.#][^.#]+/g) || []];
}

function named(element, marks) {
    for (const mark of marks)
        if (mark[0] === '.')
            element.classList.add(mark.slice(1));
        else
            element.id = mark.slice(1);
    return element;
}

function isProps(value) {
    return value && typeof value === 'object' && !(value instanceof Node) && !Array.isArray(value);
}

export function h(tag, props, ...children) {
    const [name, marks] = split(tag);
    if (!isProps(props)) {
        children.unshift(props);
        props = null;
    }
    return make(named(document.createElement(name), marks), props, children);
}

/* The same for SVG. */
export function svg(tag, props, ...children) {
    const [name, marks] = split(tag);
    if (!isProps(props)) {
        children.unshift(props);
        props = null;
    }
    return make(named(document.createElementNS(SVG, name), marks), props, children);
}

export function fill(element, ...children) {
    element.replaceChildren();
    return add(element, children);
}

/* What a field has: the text it was filled with while that is what it shows. A textarea makes CR LF and CR into LF, an input drops them. */
export function typedInto(input, text) {
    const shown = input.value;
    return () => (input.value === shown ? text : input.value);
}

let ids = 0;
export const newId = (prefix = 'i') => `${prefix}${++ids}`;

/* fn at most once every `ms`, the last call is never left out. */
export function throttle(fn, ms) {
    let timer = 0, last = 0, args;
    const run = () => {
        timer = 0;
        last = performance.now();
        fn(...args);
    };
    return (...now) => {
        args = now;
        if (!timer)
            timer = setTimeout(run, Math.max(0, last + ms - performance.now()));
    };
}

/* fn once nothing has been asked for `ms`. */
export function debounce(fn, ms) {
    let timer = 0;
    return (...args) => {
        clearTimeout(timer);
        timer = setTimeout(() => fn(...args), ms);
    };
}

/*
 * A click is a press and a release on one element: what is drawn anew in between would swallow it. So what
 * draws by itself, because something was written, waits until no button is held down in `place`. How a list of
 * choices ends, a browser does not always say: hence the other events, and the limit.
 */
const HELD_MS = 60000;
let pressed = null, limit = 0;
const waiting = [];

function released() {
    clearTimeout(limit);
    pressed = null;
    setTimeout(() => pressed || waiting.splice(0).forEach((draw) => draw())); /* after the click */
}
addEventListener('pointerdown', (event) => {
    pressed = event.target;
    clearTimeout(limit);
    limit = setTimeout(released, HELD_MS);
}, true);
for (const end of ['pointerup', 'pointercancel', 'dragend', 'change', 'keydown', 'blur'])
    addEventListener(end, (event) => (end !== 'blur' || event.target === window) && released(), true);

export function whenReleased(place, draw) {
    if (pressed && place.contains(pressed))
        waiting.push(draw);
    else
        draw();
}
