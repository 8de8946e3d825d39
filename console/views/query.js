/* views/query.js: items with the builder open. */
import items from './items.js';

export default { ...items, title: 'Query' };
