/*
 * server/profile.h: being as limited as another database that speaks DynamoDB's protocol.
 *
 * With a profile the server refuses the operations that the other one does not have, with its words,
 * so that a program can be tried against that before it is moved there. Everything else is as
 * without: differences in answers, and in how late streams are, are not imitated.
 */
#ifndef HF_SERVER_PROFILE_H
#define HF_SERVER_PROFILE_H

#include <holdfast/db.h>

enum server_profile { PROFILE_DYNAMODB, PROFILE_ALTERNATOR, PROFILE_DYNAMODB_LOCAL };

/* Does it have that operation? If not, *message says so as it does; in the scope. */
bool hf__profile_has(struct hf_scope *s, enum server_profile profile, enum hf_op op,
                     struct hf_str name, struct hf_str *message);

#endif
