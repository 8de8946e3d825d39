"""UpdateItem: every clause and function, what comes back, and what is refused."""
import re

from support import INVALID, B, Case, N, S, Shared, refusals


class Clauses(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create()

    def begin(self, **attributes):
        self.key = {"pk": S(self.id())}
        self.db.put_item(TableName=self.name, Item={**self.key, **attributes})

    def update(self, expression, values=None, names=None, **more):
        if values:
            more["ExpressionAttributeValues"] = values
        if names:
            more["ExpressionAttributeNames"] = names
        return self.db.update_item(TableName=self.name, Key=self.key, UpdateExpression=expression,
                                   **more)

    def now(self):
        item = self.get(self.name, **self.key)
        del item["pk"]
        return item

    def test_set(self):
        self.begin(a=N(1))
        self.update("SET a = :a, b = :b", {":a": S("x"), ":b": {"SS": ["y"]}})
        self.assertEqual(self.now(), {"a": S("x"), "b": {"SS": ["y"]}})

    def test_set_reads_the_old_item(self):
        self.begin(a=N(1), b=N(2))
        self.update("SET a = b, b = a")
        self.assertEqual(self.now(), {"a": N(2), "b": N(1)})

    def test_plus_and_minus(self):
        self.begin(a=N(10))
        self.update("SET b = a + :x, c = :x - a", {":x": N("0.5")})
        self.assertEqual(self.now(), {"a": N(10), "b": N("10.5"), "c": N("-9.5")})

    def test_exact_arithmetic(self):
        self.begin(a=N("0.1"))
        self.update("SET a = a + :x", {":x": N("0.2")})
        self.assertEqual(self.now(), {"a": N("0.3")})

    def test_if_not_exists(self):
        self.begin(a=N(1))
        self.update("SET a = if_not_exists(a, :x), b = if_not_exists(b, :x) + :x", {":x": N(5)})
        self.assertEqual(self.now(), {"a": N(1), "b": N(10)})

    def test_list_append(self):
        self.begin(a={"L": [N(1)]})
        self.update("SET a = list_append(a, :x), b = list_append(:x, a)", {":x": {"L": [N(2)]}})
        self.assertEqual(self.now(), {"a": {"L": [N(1), N(2)]}, "b": {"L": [N(2), N(1)]}})

    def test_list_append_to_nothing(self):
        self.begin()
        self.update("SET a = list_append(if_not_exists(a, :none), :x)",
                    {":x": {"L": [N(2)]}, ":none": {"L": []}})
        self.assertEqual(self.now(), {"a": {"L": [N(2)]}})

    def test_nested_set(self):
        self.begin(m={"M": {"l": {"L": [N(1), {"M": {}}]}}})
        self.update("SET m.l[1].x = :x, m.#y = :x", {":x": S("new")}, {"#y": "y.z"})
        self.assertEqual(self.now(), {"m": {"M": {"l": {"L": [N(1), {"M": {"x": S("new")}}]},
                                                  "y.z": S("new")}}})

    def test_set_behind_the_end(self):
        self.begin(l={"L": [N(1)]})
        self.update("SET l[9] = :b, l[5] = :a", {":a": S("a"), ":b": S("b")})
        self.assertEqual(self.now(), {"l": {"L": [N(1), S("a"), S("b")]}})

    def test_remove(self):
        self.begin(a=N(1), b=N(2), m={"M": {"x": N(3), "y": N(4)}})
        self.update("REMOVE a, m.x, absent")
        self.assertEqual(self.now(), {"b": N(2), "m": {"M": {"y": N(4)}}})

    def test_remove_elements(self):
        self.begin(l={"L": [N(i) for i in range(5)]})
        self.update("REMOVE l[0], l[2], l[9]")
        self.assertEqual(self.now(), {"l": {"L": [N(1), N(3), N(4)]}})

    def test_add_number(self):
        self.begin(a=N(1))
        self.update("ADD a :x, b :x", {":x": N("-2.5")})
        self.assertEqual(self.now(), {"a": N("-1.5"), "b": N("-2.5")})

    def test_add_to_sets(self):
        self.begin(s={"SS": ["a"]}, n={"NS": ["1"]}, b={"BS": [b"1"]})
        self.update("ADD s :s, n :n, b :b, fresh :s",
                    {":s": {"SS": ["b", "a"]}, ":n": {"NS": ["2", "1.0"]}, ":b": {"BS": [b"0"]}})
        self.assertEqual(self.now(), {"s": {"SS": ["a", "b"]}, "n": {"NS": ["1", "2"]},
                                      "b": {"BS": [b"0", b"1"]}, "fresh": {"SS": ["a", "b"]}})

    def test_delete_from_sets(self):
        self.begin(s={"SS": ["a", "b", "c"]}, n={"NS": ["1"]})
        self.update("DELETE s :s, n :n, absent :s", {":s": {"SS": ["a", "z"]},
                                                      ":n": {"NS": ["1"]}})
        self.assertEqual(self.now(), {"s": {"SS": ["b", "c"]}})

    def test_all_clauses(self):
        self.begin(a=N(1), b=N(2), c=N(3), d={"NS": ["1", "2"]})
        self.update("SET a = :x REMOVE b ADD c :x DELETE d :d", {":x": N(7), ":d": {"NS": ["2"]}})
        self.assertEqual(self.now(), {"a": N(7), "c": N(10), "d": {"NS": ["1"]}})

    def test_creates(self):
        self.key = {"pk": S("created")}
        self.update("SET a = :x", {":x": N(1)})
        self.assertEqual(self.now(), {"a": N(1)})

    def test_remove_alone_creates_nothing(self):
        self.key = {"pk": S("not created")}
        self.update("REMOVE a")
        self.assertIsNone(self.get(self.name, **self.key))

    def test_no_update_creates_a_bare_item(self):
        self.key = {"pk": S("bare")}
        self.db.update_item(TableName=self.name, Key=self.key)
        self.assertEqual(self.now(), {})

    def test_return_all_old(self):
        self.begin(a=N(1))
        told = self.update("SET a = :x", {":x": N(2)}, ReturnValues="ALL_OLD")
        self.assertEqual(told["Attributes"], {**self.key, "a": N(1)})

    def test_return_all_new(self):
        self.begin(a=N(1))
        told = self.update("SET b = :x", {":x": N(2)}, ReturnValues="ALL_NEW")
        self.assertEqual(told["Attributes"], {**self.key, "a": N(1), "b": N(2)})

    def test_return_updated_old(self):
        self.begin(a=N(1), b=N(2))
        told = self.update("SET a = :x, c = :x", {":x": N(9)}, ReturnValues="UPDATED_OLD")
        self.assertEqual(told["Attributes"], {"a": N(1)})

    def test_return_updated_new(self):
        self.begin(a=N(1), b=N(2))
        told = self.update("SET a = :x REMOVE b", {":x": N(9)}, ReturnValues="UPDATED_NEW")
        self.assertEqual(told["Attributes"], {"a": N(9)})

    def test_return_updated_new_nested(self):
        self.begin(m={"M": {"l": {"L": [N(1), N(2)]}, "other": N(3)}})
        told = self.update("SET m.l[1] = :x", {":x": N(9)}, ReturnValues="UPDATED_NEW")
        self.assertEqual(told["Attributes"], {"m": {"M": {"l": {"L": [N(9)]}}}})

    def test_return_updated_old_of_a_new_item(self):
        self.key = {"pk": S("fresh one")}
        told = self.update("SET a = :x", {":x": N(1)}, ReturnValues="UPDATED_OLD")
        self.assertNotIn("Attributes", told)

    def test_condition_fails_with_the_item(self):
        self.begin(a=N(1))
        error = self.fails("ConditionalCheckFailedException", "The conditional request failed",
                           self.update, "SET a = :x", {":x": N(2)}, ConditionExpression="a > :x",
                           ReturnValuesOnConditionCheckFailure="ALL_OLD")
        self.assertEqual(error.response["Item"], {**self.key, "a": N(1)})

    def test_condition_and_update_share_values(self):
        self.begin(a=N(1))
        self.update("SET a = a + :x", {":x": N(1)}, ConditionExpression="a = :x")
        self.assertEqual(self.now(), {"a": N(2)})

    def test_capacity(self):
        self.begin(a=S("x" * 2500))
        told = self.update("SET a = :x", {":x": N(1)}, ReturnConsumedCapacity="TOTAL")
        self.assertEqual(told["ConsumedCapacity"]["CapacityUnits"], 3.0)

    def test_legacy_updates(self):
        self.begin(a=N(1), s={"SS": ["x", "y"]}, gone=N(0))
        told = self.db.update_item(
            TableName=self.name, Key=self.key, ReturnValues="ALL_NEW", AttributeUpdates={
                "a": {"Action": "ADD", "Value": N(4)}, "b": {"Value": S("put")},
                "s": {"Action": "DELETE", "Value": {"SS": ["x"]}}, "gone": {"Action": "DELETE"}})
        self.assertEqual(told["Attributes"],
                         {**self.key, "a": N(5), "b": S("put"), "s": {"SS": ["y"]}})

    def test_too_large(self):
        self.begin(a=S("x" * 300000))
        self.invalid(re.compile("^Item size to update has exceeded the maximum allowed size$"),
                     self.update, "SET b = :x", {":x": S("x" * 200000)})


def update(expression, values=None, names=None, **more):
    made = {"Key": {"pk": S("a")}, "UpdateExpression": expression, **more}
    if values:
        made["ExpressionAttributeValues"] = values
    if names:
        made["ExpressionAttributeNames"] = names
    return made


UPDATE = "Invalid UpdateExpression: "
X = {":x": N(1)}


@refusals(
    key=("update_item", update("SET pk = :x", {":x": S("b")}), INVALID,
         "One or more parameter values were invalid: Cannot update attribute pk. This attribute "
         "is part of the key"),
    twice=("update_item", update("SET a = :x SET b = :x", X), INVALID,
           UPDATE + 'The "SET" section can only be used once in an update expression;'),
    overlap=("update_item", update("SET a.b = :x REMOVE a", X), INVALID,
             UPDATE + "Two document paths overlap with each other; must remove or rewrite one of "
             "these paths; path one: [a, b], path two: [a]"),
    conflict=("update_item", update("SET a.b = :x, a[1] = :x", X), INVALID,
              UPDATE + "Two document paths conflict with each other; must remove or rewrite one "
              "of these paths; path one: [a, b], path two: [a, [1]]"),
    empty=("update_item", update(""), INVALID, UPDATE + "The expression can not be empty;"),
    syntax=("update_item", update("SET a + :x", X), INVALID,
            re.compile('^Invalid UpdateExpression: Syntax error; token: "\\+"')),
    undefined_value=("update_item", update("SET a = :y", X), INVALID,
                     UPDATE + "An expression attribute value used in expression is not defined; "
                     "attribute value: :y"),
    undefined_name=("update_item", update("SET #a = :x", X), INVALID,
                    UPDATE + "An expression attribute name used in the document path is not "
                    "defined; attribute name: #a"),
    unused_value=("update_item", update("SET a = :x", {":x": N(1), ":z": N(2)}), INVALID,
                  "Value provided in ExpressionAttributeValues unused in expressions: keys: {:z}"),
    unused_name=("update_item", update("SET a = :x", X, {"#z": "z"}), INVALID,
                 "Value provided in ExpressionAttributeNames unused in expressions: keys: {#z}"),
    reserved=("update_item", update("SET name = :x", X), INVALID,
              UPDATE + "Attribute name is a reserved keyword; reserved keyword: name"),
    missing_operand=("update_item", update("SET a = nothing"), INVALID,
                     "The provided expression refers to an attribute that does not exist in the "
                     "item"),
    missing_parent=("update_item", update("SET nothing.b = :x", X), INVALID,
                    "The document path provided in the update expression is invalid for update"),
    wrong_type=("update_item", update("SET n = s + :x", X), INVALID,
                "An operand in the update expression has an incorrect data type"),
    add_string=("update_item", update("ADD n :x", {":x": S("1")}), INVALID,
                UPDATE + "Incorrect operand type for operator or function; operator: ADD, operand "
                "type: STRING"),
    add_to_string=("update_item", update("ADD s :x", X), INVALID,
                   "An operand in the update expression has an incorrect data type"),
    delete_number=("update_item", update("DELETE n :x", X), INVALID,
                   UPDATE + "Incorrect operand type for operator or function; operator: DELETE, "
                   "operand type: NUMBER"),
    unknown_function=("update_item", update("SET a = dog(:x)", X), INVALID,
                      UPDATE + "Invalid function name; function: dog"),
    overflow=("update_item", update("SET n = n + :x", {":x": N("9E125")},
                                    ReturnValues="ALL_NEW"), INVALID,
              "Number overflow. Attempting to store a number with magnitude larger than supported "
              "range"),
    both_kinds=("update_item", {"Key": {"pk": S("a")}, "UpdateExpression": "REMOVE a",
                                "AttributeUpdates": {"a": {"Action": "DELETE"}}}, INVALID,
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {AttributeUpdates} Expression parameters: "
                "{UpdateExpression}"),
    too_long=("update_item", update("SET a = :x" + " " * 4096, X), INVALID,
              UPDATE + "Expression size has exceeded the maximum allowed size; expression size: "
              "4106"),
    key_lookup=("update_item", update("SET a = pk.a + :x", X), INVALID,
                re.compile("Key attributes must be scalars; list random access '\\[\\]' and map "
                           "lookup '.' are not allowed")),
)
class Refusing(Shared):
    @classmethod
    def make(cls):
        cls.name = cls.create()
        cls().db.put_item(TableName=cls.name,
                          Item={"pk": S("a"), "n": N("9.9E125"), "s": S("text"), "b": B(b"x")})
