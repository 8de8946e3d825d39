#!/usr/bin/env python3
"""Every member of every request is read, or refused by name: members.py HOLDFAST

A server that does not know a member steps over it, and whoever sent it believes that it was heard. So
the service's own model, as botocore has it, is gone through: each member of each operation, however
deep, is sent with a value of another type, alone. Who reads it answers SerializationException; who
refuses it says its name. Nothing else will do. The installed botocore may be older than the service:
NEWER has what came later.

Operations that are refused as a whole have nothing to lose, and so have those that are not there:
REFUSED and UNKNOWN list them. docs/compatibility.md has a table of members that are read and change
nothing; each of them is sent as it should be, and accepted.
"""
import json
import os
import re
import sys

from wire import SERVICES, Model, Server, Wrong, with_place

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENT = os.path.join(HERE, "..", "..", "docs", "compatibility.md")

# Always refused, whatever the request says besides what is needed to say so.
REFUSED = {
    "CreateGlobalTable", "DescribeGlobalTableSettings", "DisableKinesisStreamingDestination",
    "RestoreTableToPointInTime", "UpdateGlobalTable",
    "UpdateGlobalTableSettings", "UpdateTableReplicaAutoScaling",
}
# UnknownOperationException.
UNKNOWN = {
    "EnableKinesisStreamingDestination", "UpdateKinesisStreamingDestination",
    "SearchVectors", "StartBulkPutItems", "DescribeBulkOperation", "ListBulkOperations",
    "CancelBulkOperation",
}
# Members that the model has since 2024, by operation; a type that they do not have.
THROUGHPUT = {"OnDemandThroughput": {"MaxReadRequestUnits": "x", "MaxWriteRequestUnits": "x"},
              "WarmThroughput": {"ReadUnitsPerSecond": "x", "WriteUnitsPerSecond": "x"}}
NEWER = {
    "CreateTable": {**THROUGHPUT, "GlobalSecondaryIndexes": [THROUGHPUT], "ResourcePolicy": 7,
                    "DeletionProtectionEnabled": "x", "VectorIndexes": 7, "GlobalTableSourceArn": 7,
                    "GlobalTableSettingsReplicationMode": 7},
    "UpdateTable": {**THROUGHPUT,
                    "GlobalSecondaryIndexUpdates": [{"Create": THROUGHPUT, "Update": THROUGHPUT}],
                    "DeletionProtectionEnabled": "x", "VectorIndexUpdates": 7,
                    "MultiRegionConsistency": 7, "GlobalTableWitnessUpdates": 7,
                    "GlobalTableSettingsReplicationMode": 7},
    "RestoreTableFromBackup": {"GlobalSecondaryIndexOverride": [THROUGHPUT],
                               "OnDemandThroughputOverride": THROUGHPUT["OnDemandThroughput"]},
    "UpdateContinuousBackups": {"PointInTimeRecoverySpecification": {"RecoveryPeriodInDays": "x"}},
    "UpdateContributorInsights": {"ContributorInsightsMode": 7},
    "PutResourcePolicy": {"ResourceArn": 7, "Policy": 7, "ExpectedRevisionId": 7,
                          "ConfirmRemoveSelfResourceAccess": "x"},
    "DescribeStream": {"ShardFilter": {"Type": 7, "ShardId": 7}},
    **{operation: {"ReturnValuesOnConditionCheckFailure": 7}
       for operation in ("PutItem", "UpdateItem", "DeleteItem", "ExecuteStatement")},
}
# Requests around the members of the document's table that have to succeed.
TABLE = {"TableName": "tab", "BillingMode": "PAY_PER_REQUEST",
         "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
         "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/tab"
ACCEPTED = {
    "PutResourcePolicy.ConfirmRemoveSelfResourceAccess": (
        {"ResourceArn": ARN, "Policy": "{}"}, True),
    "ListGlobalTables.RegionName": ({}, "us-east-1"),
    "ListGlobalTables.ExclusiveStartGlobalTableName": ({}, "abc"),
    "ListGlobalTables.Limit": ({}, 1),
    "ListTagsOfResource.NextToken": ({"ResourceArn": ARN}, "x"),
    "ListContributorInsights.NextToken": ({}, "x"),
    "ListContributorInsights.MaxResults": ({}, 1),
    "UpdateContributorInsights.ContributorInsightsMode": (
        {"TableName": "tab", "ContributorInsightsAction": "DISABLE"}, "THROTTLED_KEYS"),
    "UpdateContinuousBackups.RecoveryPeriodInDays": (
        {"TableName": "tab", "PointInTimeRecoverySpecification": {
            "PointInTimeRecoveryEnabled": False}}, 1),
}
INSIDE = {"UpdateContinuousBackups.RecoveryPeriodInDays": "PointInTimeRecoverySpecification"}


def another_type(shape):
    return "x" if shape.type_name in ("integer", "long", "double", "float", "boolean",
                                      "timestamp") else 7


def members(shape, around=lambda value: value, seen=()):
    """(path, body) of every member, each alone and of another type."""
    kind = shape.type_name
    if kind == "structure" and shape.name != "AttributeValue" and shape.name not in seen:
        for name, member in shape.members.items():
            def one(value, name=name):
                return around({name: value})
            yield name, one(another_type(member))
            for path, body in members(member, one, seen + (shape.name,)):
                yield name + "." + path, body
    elif kind == "list":
        yield from members(shape.member, lambda value: around([value]), seen)
    elif kind == "map":
        yield from members(shape.value, lambda value: around({"x": value}), seen)


def leaves(value, path="", around=lambda value: value):
    """The same of what NEWER says."""
    if isinstance(value, list):
        yield from leaves(value[0], path, lambda inner: around([inner]))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (path + "." + name).lstrip("."),
                              lambda one, name=name: around({name: one}))
    else:
        yield path, around(value)


def ask(server, targets, operation, body):
    prefix = targets.get(operation, SERVICES["dynamodb"])
    (status, answer), = server.send([(prefix + "." + operation, json.dumps(body).encode())])
    return status, json.loads(answer) if answer else {}


def check_member(server, targets, operation, path, body):
    """True when the member is refused by its name."""
    status, answer = ask(server, targets, operation, body)
    kind = answer.get("__type", "").partition("#")[2]
    if status == 400 and kind == "SerializationException":
        return False
    name = path.rpartition(".")[2]
    if status == 400 and kind == "ValidationException" and \
            f": {name} is not supported: " in answer.get("message", ""):
        return True
    raise Wrong(f"{operation}: {path} is neither read nor refused: {json.dumps(body)}: "
                f"{status} {answer}")


def check_operation(server, targets, operation, cases):
    """How many members there were."""
    refused = set()
    count = 0
    for path, body in cases:
        if any(path.startswith(name + ".") for name in refused):
            continue
        if check_member(server, targets, operation, path, body):
            refused.add(path)
        count += 1
    return count


def below_replicas(path):
    """ReplicaUpdates is a list of our own form, and refused as soon as it has an element."""
    return path.startswith("ReplicaUpdates.")


def documented():
    """The first column of the table between the marks: OPERATION.MEMBER"""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    table = re.search(r"<!-- members without effect -->\n(.*?)<!-- end of members -->", text, re.S).group(1)
    return set(re.findall(r"`(\w+\.\w+)`", table))


def check_accepted(server, targets):
    if documented() != set(ACCEPTED):
        raise Wrong(f"docs/compatibility.md and this test differ: {documented() ^ set(ACCEPTED)}")
    status, answer = ask(server, targets, "CreateTable", TABLE)
    if status != 200:
        raise Wrong(f"CreateTable: {answer}")
    for name, (request, value) in ACCEPTED.items():
        operation, _, member = name.partition(".")
        path = (INSIDE[name], member) if name in INSIDE else (member,)
        body = json.loads(json.dumps(request).replace(ARN, answer["TableDescription"]["TableArn"]))
        status, told = ask(server, targets, operation, with_place(body, path, value))
        if status != 200:
            raise Wrong(f"{name}: {status} {told}")


def check_unknown(server, targets):
    for operation in UNKNOWN:
        status, answer = ask(server, targets, operation, {})
        if status != 400 or "UnknownOperationException" not in answer["__type"]:
            raise Wrong(f"{operation} is there: {status} {answer}")


def check_replicas(server, targets):
    status, answer = ask(server, targets, "UpdateTable", {
        "TableName": "tab", "ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]})
    if status != 400 or "ReplicaUpdates are not supported" not in answer.get("message", ""):
        raise Wrong(f"UpdateTable: ReplicaUpdates: {status} {answer}")


def main():
    model = Model()
    server = Server(sys.argv[1])
    count = 0
    for operation, shape in sorted(model.inputs.items()):
        if operation in UNKNOWN | REFUSED or not shape:
            continue
        cases = [case for case in members(shape) if not below_replicas(case[0])]
        count += check_operation(server, model.targets, operation, cases)
    for operation, newer in NEWER.items():
        count += check_operation(server, model.targets, operation, leaves(newer))
    check_unknown(server, model.targets)
    check_accepted(server, model.targets)
    check_replicas(server, model.targets)
    server.stop()
    print(f"{count} members are read or refused by name")


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        for process in Server.running:
            if process.poll() is None:
                process.kill()
        print(wrong)
        sys.exit(1)
