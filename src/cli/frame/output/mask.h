/*
 * cli/frame/output/mask.h: text without the passwords of the URLs in it. The one place where that is done.
 */
#ifndef HF_CLI_FRAME_MASK_H
#define HF_CLI_FRAME_MASK_H

#include <holdfast/scope.h>

/*
 * The text with *** in place of user and password: between // and @, each as it is or percent-encoded, as in
 * "?proxy=http%3A%2F%2Fann%3Asecret%40host". A password may have any character in it, so all up to the last @
 * goes, before the next blank, quote or //. The text itself when there is none; in the scope.
 */
struct hf_str hf__cli_mask(struct hf_scope *s, struct hf_str text);

#endif
