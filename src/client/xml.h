/*
 * client/xml.h: the few texts that are wanted from a small XML document.
 *
 * STS answers in XML, of which this reads elements, text and the five named and the numeric
 * character references. Attributes are stepped over. A document with anything else in it (DTDs,
 * CDATA, comments, processing instructions but the first line), or that is not well formed, is
 * refused as a whole.
 */
#ifndef HF_CLIENT_XML_H
#define HF_CLIENT_XML_H

#include "base/base.h"

struct xml_want {
    const char *path;     /* "Answer/Result/Key" */
    struct hf_str *value; /* the text in it, in the scope; stays as it is when there is none */
};

/* Of an element that comes twice, the first counts. HF_INVALID without a message; HF_NOMEM. */
enum hf_status hf__xml_read(struct hf_scope *s, struct hf_str xml, const struct xml_want *wants,
                            size_t wants_len);

/*
 * Called when an element ends, with its path and its text, which lives in the scope; absent when
 * there were elements in it. Elements without an end tag ("<a/>") are stepped over. False: stop,
 * the document is refused.
 */
typedef bool xml_element_fn(void *user, struct hf_str path, struct hf_str text);

/*
 * Walk a document, for those with lists in them. What was called before something turned out to be
 * wrong was called all the same. HF_INVALID without a message; HF_NOMEM.
 */
enum hf_status hf__xml_walk(struct hf_scope *s, struct hf_str xml, xml_element_fn *fn, void *user);

#endif
