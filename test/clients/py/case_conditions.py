"""Conditions, as filters and as ConditionExpression: operators, functions, types, refusals."""
import re

from support import INVALID, B, N, S, Shared, refusals

ITEM = {"pk": S("a"), "n": N(5), "s": S("hello"), "b": B(b"\x01\x02"), "t": {"BOOL": True},
        "z": {"NULL": True}, "l": {"L": [N(1), S("x")]}, "m": {"M": {"k": N(1), "j": S("v")}},
        "ss": {"SS": ["p", "q"]}, "ns": {"NS": ["1", "2"]}, "bs": {"BS": [b"\x01"]}, "n2": N("5.0")}

VALUES = {":n5": N(5), ":n6": N(6), ":n4": N("4"), ":hello": S("hello"), ":h": S("he"),
          ":p": S("p"), ":one": N(1), ":x": S("x"), ":b": B(b"\x01"), ":true": {"BOOL": True},
          ":map": {"M": {"j": S("v"), "k": N("1.0")}}, ":list": {"L": [N(1), S("x")]},
          ":set": {"SS": ["q", "p"]}, ":S": S("S"), ":N": S("N"), ":SS": S("SS"),
          ":NULL": S("NULL"), ":M": S("M"), ":L": S("L"), ":BOOL": S("BOOL"), ":B": S("B"),
          ":two": N(2), ":null": {"NULL": True}}

HOLDS = {
    "equal": "n = :n5", "equal_by_value": "n = n2", "not_equal": "n <> :n6", "less": "n < :n6",
    "less_or_equal": "n <= :n5", "greater": "n > :n4", "greater_or_equal": "n >= :n5",
    "value_first": ":n4 < n", "between": "n BETWEEN :n4 AND :n6", "between_ends":
    "n BETWEEN :n5 AND :n5", "in": "n IN (:n4, :n5)", "in_paths": "n IN (s, n2)",
    "and": "n = :n5 AND s = :hello", "or": "n = :n6 OR s = :hello", "not": "NOT n = :n6",
    "precedence": "n = :n5 OR n = :n6 AND n = :n4", 
    "parentheses": "(n = :n5 OR n = :n6) AND t = :true",
    "lower_case_words": "n between :n4 and :n6 and not n in (:n6)",
    "exists": "attribute_exists(m.k)", "exists_element": "attribute_exists(l[1])",
    "not_exists": "attribute_not_exists(m.absent)",
    "not_exists_element": "attribute_not_exists(l[2])",
    "begins_with": "begins_with(s, :h)", "begins_with_binary": "begins_with(b, :b)",
    "contains_text": "contains(s, :h)", "contains_member": "contains(ss, :p)",
    "contains_number": "contains(ns, :one)", "contains_element": "contains(l, :x)",
    "size_text": "size(s) = :n5", "size_list": "size(l) = :two", "size_map": "size(m) = :two",
    "size_set": "size(ss) = :two", "size_binary": "size(b) = :two",
    "type_string": "attribute_type(s, :S)", "type_number": "attribute_type(n, :N)",
    "type_set": "attribute_type(ss, :SS)", "type_null": "attribute_type(z, :NULL)",
    "type_map": "attribute_type(m, :M)", "type_list": "attribute_type(l, :L)",
    "type_bool": "attribute_type(t, :BOOL)", "type_binary": "attribute_type(b, :B)",
    "map_equal": "m = :map", "list_equal": "l = :list", "set_equal_in_any_order": "ss = :set",
    "null_equal": "z = :null", "missing_is_not_equal": "absent <> :n5",
    "missing_both_not_equal": "absent <> absent2", "types_not_equal": "n <> :hello",
    "nested": "m.k = :one AND l[0] = :one",
}
FAILS = {
    "equal": "n = :n6", "equal_types": "n = :hello", "less_types": "n < :hello",
    "missing_equal": "absent = :n5", "missing_less": "absent < :n5", "and": "n = :n5 AND n = :n6",
    "not": "NOT n = :n5", "between": "n BETWEEN :n6 AND :n6", "in": "n IN (:n4, :n6)",
    "exists": "attribute_exists(absent)", "contains_map": "contains(m, :x)",
    "begins_with_number": "begins_with(n, :h)", "size_number": "size(n) > :one",
    "size_missing": "size(absent) >= :one", "type": "attribute_type(n, :S)",
    "not_and_or": "NOT (n = :n5 OR n = :n6)",
}


def used(expression):
    return {name: VALUES[name] for name in set(re.findall(r":\w+", expression))}


class Evaluating(Shared):
    """Each condition is asked three ways: as a filter, in a write, and in a transaction."""

    @classmethod
    def make(cls):
        cls.name = cls.create()
        cls().db.put_item(TableName=cls.name, Item=ITEM)

    def holds(self, expression):
        values = used(expression)
        more = {"ExpressionAttributeValues": values} if values else {}
        found = self.db.scan(TableName=self.name, FilterExpression=expression, **more)
        self.assertEqual(found["ScannedCount"], 1)
        check = {"TableName": self.name, "Key": {"pk": S("a")}, "ConditionExpression": expression,
                 **more}
        try:
            self.db.update_item(**check)
            wrote = True
        except self.db.exceptions.ConditionalCheckFailedException:
            wrote = False
        try:
            self.db.transact_write_items(TransactItems=[{"ConditionCheck": check}])
            checked = True
        except self.db.exceptions.TransactionCanceledException:
            checked = False
        self.assertEqual({bool(found["Count"]), wrote, checked}, {wrote}, "they disagree")
        return wrote


for _name, _expression in HOLDS.items():
    setattr(Evaluating, "test_holds_" + _name, lambda self, e=_expression: self.assertTrue(
        self.holds(e)))
for _name, _expression in FAILS.items():
    setattr(Evaluating, "test_fails_" + _name, lambda self, e=_expression: self.assertFalse(
        self.holds(e)))


def scan(expression, **values):
    made = {"FilterExpression": expression}
    if values:
        made["ExpressionAttributeValues"] = {":" + name: value for name, value in values.items()}
    return made


FILTER = "Invalid FilterExpression: "


@refusals(
    empty=("scan", scan(""), INVALID, FILTER + "The expression can not be empty;"),
    syntax=("scan", scan("a = = :v", v=N(1)), INVALID,
            FILTER + 'Syntax error; token: "=", near: "= = :v"'),
    bare_path=("scan", scan("a"), INVALID,
               re.compile('^Invalid FilterExpression: Syntax error; token: "<EOF>"')),
    redundant=("scan", scan("((a = :v))", v=N(1)), INVALID,
               FILTER + "The expression has redundant parentheses;"),
    less_bool=("scan", scan("a < :v", v={"BOOL": True}), INVALID,
               FILTER + "Incorrect operand type for operator or function; operator or function: "
               "<, operand type: BOOL"),
    begins_with_number=("scan", scan("begins_with(a, :v)", v=N(1)), INVALID,
                        FILTER + "Incorrect operand type for operator or function; operator or "
                        "function: begins_with, operand type: N"),
    between_types=("scan", scan("a BETWEEN :v AND :w", v=N(1), w=S("a")), INVALID,
                   re.compile("The BETWEEN operator requires same data type for lower and upper "
                              "bounds;")),
    between_order=("scan", scan("a BETWEEN :v AND :w", v=N(2), w=N(1)), INVALID,
                   re.compile("The BETWEEN operator requires upper bound to be greater than or "
                              "equal to lower bound;")),
    function=("scan", scan("dog(a)"), INVALID, FILTER + "Invalid function name; function: dog"),
    operands=("scan", scan("attribute_exists(a, b)"), INVALID,
              FILTER + "Incorrect number of operands for operator or function; operator or "
              "function: attribute_exists, number of operands: 2"),
    size_alone=("scan", scan("size(a)"), INVALID,
                FILTER + "The function is not allowed to be used this way in an expression; "
                "function: size"),
    path_needed=("scan", scan("attribute_exists(:v)", v=N(1)), INVALID,
                 FILTER + "Operator or function requires a document path; operator or function: "
                 "attribute_exists"),
    same_operands=("scan", scan("contains(a, a)"), INVALID,
                   FILTER + "The first operand must be distinct from the remaining operands for "
                   "this operator or function; operator: contains, first operand: [a]"),
    reserved=("scan", scan("status = :v", v=N(1)), INVALID,
              FILTER + "Attribute name is a reserved keyword; reserved keyword: status"),
    operators_301=("scan", scan(" OR ".join(["a=:v"] * 151), v=N(1)), INVALID,
                   re.compile("The expression contains too many operators; operator count: 301")),
    deep_parentheses=("scan", scan("(" * 2000 + "a=:v" + ")" * 2000, v=N(1)), INVALID,
                      re.compile("^Invalid FilterExpression: ")),
    many_nots=("scan", scan("NOT " * 900 + "a=:v", v=N(1)), INVALID,
               re.compile("^Invalid FilterExpression: ")),
    value_key=("scan", {"FilterExpression": "a = :v", "ExpressionAttributeValues": {"v": N(1)}},
               INVALID, 'ExpressionAttributeValues contains invalid key: Syntax error; key: "v"'),
    empty_values=("scan", {"FilterExpression": "attribute_exists(a)",
                           "ExpressionAttributeValues": {}}, INVALID,
                  "ExpressionAttributeValues must not be empty"),
)
class Refusing(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create()
