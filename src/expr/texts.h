/*
 * expr/texts.h: every sentence that expressions can fail with, once. Those of the first part are
 * led by "Invalid <Kind>Expression: " (see hf__expr_fail()), the others stand alone.
 */
#ifndef HF_EXPR_TEXTS_H
#define HF_EXPR_TEXTS_H

/* ---- after "Invalid ConditionExpression: " -------------------------------------------------- */

#define TEXT_EMPTY "The expression can not be empty;"
#define TEXT_UPDATED_SIZE "Item size to update has exceeded the maximum allowed size"
#define TEXT_SIZE "Expression size has exceeded the maximum allowed size; expression size: %zu"
#define TEXT_SYNTAX "Syntax error; token: \"%.*s\", near: \"%.*s\""
#define TEXT_PARENTHESES "The expression has redundant parentheses;"
#define TEXT_OPERATORS "The expression contains too many operators; operator count: %u"
#define TEXT_RESERVED "Attribute name is a reserved keyword; reserved keyword: %.*s"
#define TEXT_INDEX "List index is not within the allowable range; index: [%.*s]"
#define TEXT_DEPTH "The document path has too many nesting levels; nesting levels: %zu"
#define TEXT_FUNCTION "Invalid function name; function: %.*s"
#define TEXT_FUNCTION_CONDITION                                                                    \
    "The function is not allowed in a condition expression; function: %.*s"
#define TEXT_FUNCTION_UPDATE "The function is not allowed in an update expression; function: %.*s"
#define TEXT_FUNCTION_WAY                                                                          \
    "The function is not allowed to be used this way in an expression; function: %.*s"
#define TEXT_SECTION "The \"%s\" section can only be used once in an update expression;"

#define TEXT_NAME_UNDEFINED                                                                        \
    "An expression attribute name used in the document path is not defined; attribute name: %.*s"
#define TEXT_VALUE_UNDEFINED                                                                       \
    "An expression attribute value used in expression is not defined; attribute value: %.*s"
#define TEXT_OPERANDS                                                                              \
    "Incorrect number of operands for operator or function; operator or function: %s, number of "  \
    "operands: %u"
#define TEXT_IN_OPERANDS                                                                           \
    "The IN operator is provided with too many operands; number of operands: %u"
#define TEXT_PATH_NEEDED "Operator or function requires a document path; operator or function: %s"
#define TEXT_DISTINCT                                                                              \
    "The first operand must be distinct from the remaining operands for this operator or "         \
    "function; operator: %s, first operand: %.*s"
#define TEXT_OPERAND_TYPE                                                                          \
    "Incorrect operand type for operator or function; operator or function: %s, operand type: %s"
#define TEXT_ACTION_TYPE                                                                           \
    "Incorrect operand type for operator or function; operator: %s, operand type: %s%s"
#define TEXT_ACTION_TYPE_2026 ", typeSet: ALLOWED_FOR_ADD_OPERAND" /* (sic) of DELETE, too */
#define TEXT_TYPE_NAME                                                                             \
    "Invalid attribute type name found; type: %.*s, valid types: "                                 \
    "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}"
#define TEXT_BETWEEN_TYPES                                                                         \
    "The BETWEEN operator requires same data type for lower and upper bounds; lower bound "        \
    "operand: AttributeValue: {%s:%.*s}, upper bound operand: AttributeValue: {%s:%.*s}"
#define TEXT_BETWEEN_ORDER                                                                         \
    "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower " \
    "bound operand: AttributeValue: {%s:%.*s}, upper bound operand: AttributeValue: {%s:%.*s}"
#define TEXT_OVERLAP                                                                               \
    "Two document paths overlap with each other; must remove or rewrite one of these paths; path " \
    "one: %.*s, path two: %.*s"
#define TEXT_CONFLICT                                                                              \
    "Two document paths conflict with each other; must remove or rewrite one of these paths; "     \
    "path one: %.*s, path two: %.*s"

/* ---- standing alone ------------------------------------------------------------------------- */

#define TEXT_MAP_EMPTY "%s must not be empty"
#define TEXT_MAP_KEY "%s contains invalid key: Syntax error; key: \"%.*s\""
#define TEXT_NAME_EMPTY                                                                            \
    "ExpressionAttributeNames contains invalid value: Empty attribute name for key %.*s"
#define TEXT_NAME_LONG                                                                             \
    "ExpressionAttributeNames contains invalid value: Attribute name is longer than 65535 bytes "  \
    "for key %.*s"
#define TEXT_UNUSED "Value provided in %s unused in expressions: keys: {%.*s}"

#define TEXT_KEY_OPERATOR "Invalid operator used in KeyConditionExpression: %s"
#define TEXT_KEY_FIRST                                                                             \
    "Invalid condition in KeyConditionExpression: %s operator must have the key attribute as its " \
    "first operand"
#define TEXT_KEY_NAMES                                                                             \
    "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"
#define TEXT_KEY_NO_NAME "Invalid condition in KeyConditionExpression: No key attribute specified"
#define TEXT_KEY_NESTED_PATH "KeyConditionExpressions cannot have conditions on nested attributes"
#define TEXT_KEY_NESTED_CALL "KeyConditionExpressions cannot contain nested operations"
#define TEXT_KEY_TWICE "KeyConditionExpressions must only contain one condition per key"

#define TEXT_MISSING                                                                               \
    "The provided expression refers to an attribute that does not exist in the item"
#define TEXT_RUN_TYPE "An operand in the update expression has an incorrect data type"
#define TEXT_RUN_PATH "The document path provided in the update expression is invalid for update"
#define TEXT_LEGACY_TYPE "Type mismatch for attribute to update"
#define TEXT_LEGACY_COUNT "One or more parameter values were invalid: Too many attributes"
#define TEXT_OVERFLOW                                                                              \
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
#define TEXT_NESTING                                                                               \
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "    \
    "beyond supported limit"
#define TEXT_NAME_LONG_LEGACY                                                                      \
    "One or more parameter values were invalid: Attribute name is longer than 65535 bytes"

#endif
