"""What `sam deploy` will ask AWS for: linted, translated, and read with the parameters' values put in."""

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".venv-sam/bin"
NESTED = ["infra/tables.yaml", "infra/alarms.yaml"]
ENVIRONMENT = {**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1"}
# Nobody's credentials: nothing here may reach AWS.
ENVIRONMENT |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
NOTHING = object()


def tool(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cfn(text: str) -> Any:
    class Loader(yaml.SafeLoader):
        """YAML with CloudFormation's short forms, kept as their long ones."""

    def intrinsic(loader: Any, suffix: str, node: yaml.Node) -> Any:
        match node:
            case yaml.ScalarNode():
                value: Any = loader.construct_scalar(node)
            case yaml.SequenceNode():
                value = loader.construct_sequence(node, deep=True)
            case _:
                value = loader.construct_mapping(node, deep=True)
        return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}

    Loader.add_multi_constructor("!", intrinsic)
    return yaml.load(text, Loader)


def resolved(template: dict[str, Any], **parameters: str) -> dict[str, Any]:
    """The template with these parameters' values, its conditions decided, and what they rule out gone."""
    values: dict[str, Any] = {name: str(p["Default"]) for name, p in template["Parameters"].items() if "Default" in p}
    values |= parameters
    lists = [name for name, p in template["Parameters"].items() if p["Type"] == "CommaDelimitedList"]
    values |= {name: values[name].split(",") for name in lists}

    def decide(condition: Any) -> bool:
        ((operator, operand),) = condition.items()
        if operator == "Fn::Not":
            return not decide(operand[0])
        assert operator == "Fn::Equals"
        return bool(put_in(operand[0]) == put_in(operand[1]))

    def put_in(node: Any) -> Any:
        if isinstance(node, list):
            return [value for value in map(put_in, node) if value is not NOTHING]
        if not isinstance(node, dict):
            return node
        if node == {"Ref": "AWS::NoValue"}:
            return NOTHING
        if node.keys() == {"Ref"}:
            return values.get(node["Ref"], node)
        if node.keys() == {"Fn::Join"}:
            separator, parts = node["Fn::Join"]
            return separator.join(put_in(parts))
        if node.keys() == {"Fn::If"}:
            name, yes, no = node["Fn::If"]
            return put_in(yes if decide(template["Conditions"][name]) else no)
        pairs = ((key, put_in(value)) for key, value in node.items())
        return {key: value for key, value in pairs if value is not NOTHING}

    resources = template["Resources"].items()
    return {
        name: put_in(resource)
        for name, resource in resources
        if "Condition" not in resource or decide(template["Conditions"][resource["Condition"]])
    }


@cache
def translated() -> str:
    return tool(str(TOOLS / "python"), "tests/lambda/translate.py", "template.yaml")


def stack(**parameters: str) -> dict[str, Any]:
    return resolved(json.loads(translated()), **parameters)


def nested(path: str) -> dict[str, Any]:
    return cfn((ROOT / path).read_text())


def route(resources: dict[str, Any], method: str, path: str) -> tuple[str, dict[str, Any]]:
    """The function and the integration that API Gateway picks: literal before parameter before greedy."""
    paths = resources["Api"]["Properties"]["Body"]["paths"]

    def rank(template: str) -> list[int]:
        return [2 if "+}" in part else 1 if "{" in part else 0 for part in template.split("/")]

    def matches(template: str) -> bool:
        parts = re.split(r"(\{[^}]+\})", template)
        pattern = "".join(
            ".+" if part.endswith("+}") else "[^/]+" if part.startswith("{") else re.escape(part) for part in parts
        )
        return re.fullmatch(pattern, path) is not None

    best = min(filter(matches, paths), key=rank)
    integration = paths[best][method.lower()]["x-amazon-apigateway-integration"]
    (function,) = re.findall(r"functions/\$\{(\w+)\.Arn\}", integration["uri"]["Fn::Sub"])
    return function, integration


def statements(resources: dict[str, Any]) -> list[dict[str, Any]]:
    roles = [r for r in resources.values() if r["Type"] == "AWS::IAM::Role"]
    policies = [policy for role in roles for policy in role["Properties"].get("Policies", [])]
    policies += [r["Properties"] for r in resources.values() if r["Type"] == "AWS::IAM::Policy"]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def test_the_template_passes_sam_validate_with_lint() -> None:
    assert "valid SAM Template" in tool(str(TOOLS / "sam"), "validate", "--lint", "-t", "template.yaml")


def test_the_templates_pass_cfn_lint() -> None:
    assert tool(str(TOOLS / "cfn-lint"), "--regions", "us-east-1", "--", "template.yaml", *NESTED) == ""


STREAMED = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/chat/completions/count"),
    ("POST", "/chat/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/responses"),
    ("POST", "/completions"),
    ("POST", "/embeddings"),
    ("POST", "/moderations"),
    ("POST", "/images/generations"),
    ("POST", "/v1/audio/transcriptions"),
    ("POST", "/audio/speech"),
    ("POST", "/api/v2/context-preview"),
    ("POST", "/api/v2/chats/c1/generations"),
    ("GET", "/api/v2/chats/c1/context-audit"),
]
BUFFERED = [
    ("GET", "/"),
    ("GET", "/health"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/org/name"),
    ("GET", "/models"),
    ("OPTIONS", "/v1/chat/completions"),
    ("OPTIONS", "/api/v2/context-preview"),
    ("OPTIONS", "/api/v2/chats/c1/context-audit"),
    ("GET", "/api/v2/chats"),
    ("POST", "/api/v2/chats"),
    ("PATCH", "/api/v2/chats/c1"),
    ("DELETE", "/api/v2/chats/c1"),
    ("POST", "/api/v2/chats/c1/messages"),
    ("GET", "/api/v2/chats/c1/messages/m1"),
    ("GET", "/api/v2/chats/c1/generations/g1"),
    ("POST", "/api/v2/chats/c1/generations/g1/cancel"),
    ("POST", "/api/v2/lorebooks"),
    ("PUT", "/api/v2/settings"),
    ("GET", "/inspector"),
    ("GET", "/openapi.json"),
]


@pytest.mark.parametrize(("method", "path"), STREAMED)
def test_model_calls_are_streamed(method: str, path: str) -> None:
    function, integration = route(stack(), method, path)
    assert function == "StreamFunction"
    assert integration["responseTransferMode"] == "STREAM"
    assert "/response-streaming-invocations" in integration["uri"]["Fn::Sub"]
    assert integration["timeoutInMillis"] == 900_000


@pytest.mark.parametrize(("method", "path"), BUFFERED)
def test_everything_else_is_buffered(method: str, path: str) -> None:
    function, integration = route(stack(), method, path)
    assert function == "ApiFunction"
    assert "responseTransferMode" not in integration


@pytest.mark.parametrize(("method", "path"), STREAMED + BUFFERED)
def test_without_streaming_everything_goes_through_the_api_function(method: str, path: str) -> None:
    function, integration = route(stack(Streaming="false"), method, path)
    assert function == "ApiFunction"
    assert integration.get("responseTransferMode", "BUFFERED") == "BUFFERED"
    assert integration.get("timeoutInMillis", 29_000) == 29_000


def test_without_streaming_nothing_of_the_stream_function_is_left() -> None:
    resources = stack(Streaming="false")
    assert not [name for name in resources if "Stream" in name]
    assert "StreamFunction" not in json.dumps(resources).replace('"StreamFunction": ""', "")


def test_no_method_is_any_and_no_path_is_a_dead_end() -> None:
    paths = stack()["Api"]["Properties"]["Body"]["paths"]
    assert not [path for path, methods in paths.items() if "x-amazon-apigateway-any-method" in methods]
    for path in paths:
        parents = ["/".join(path.split("/")[:n]) for n in range(2, path.count("/") + 1)]
        assert set(parents) <= paths.keys(), f"{path} makes a resource that has no methods"


def test_the_api_is_regional_and_bodies_pass_as_bytes() -> None:
    api = stack()["Api"]["Properties"]
    assert api["EndpointConfiguration"] == {"Types": ["REGIONAL"]}
    assert api["Body"]["x-amazon-apigateway-binary-media-types"] == ["*/*"]


@pytest.mark.parametrize("origins", ["", "https://chat.example"])
def test_the_gateways_own_errors_have_our_shape_and_cors_where_it_is_on(origins: str) -> None:
    body = stack(CorsOrigins=origins)["Api"]["Properties"]["Body"]
    responses = body["x-amazon-apigateway-gateway-responses"]
    assert responses.keys() >= {"DEFAULT_4XX", "DEFAULT_5XX"}
    for response in responses.values():
        text = response["responseTemplates"]["application/json"]
        error = json.loads(text.replace("$context.error.messageString", '"Forbidden"'))["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        allowed = response["responseParameters"].get("gatewayresponse.header.Access-Control-Allow-Origin")
        assert allowed == ("'*'" if origins else None)


def test_no_policy_names_a_wildcard_resource_or_action() -> None:
    for statement in statements(stack()):
        resources = statement["Resource"]
        resources = resources if isinstance(resources, list) else [resources]
        assert all("Fn::GetAtt" in resource for resource in resources), statement
        assert not [action for action in statement["Action"] if "*" in action]
    assert not [r for r in stack().values() if "ManagedPolicyArns" in r.get("Properties", {})]


def test_each_table_grants_what_the_code_does_with_it() -> None:
    granted: dict[str, set[str]] = {}
    for statement in statements(stack()):
        if isinstance(statement["Resource"], dict):
            table = statement["Resource"]["Fn::GetAtt"][1]
            granted.setdefault(table, set()).update(statement["Action"])
    read = {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}
    write = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"}
    assert granted == {
        "Outputs.ControlTableArn": read | {"dynamodb:UpdateItem"},
        "Outputs.ChatsTableArn": read | write | {"dynamodb:ConditionCheckItem"},
    }


KEY_ACTIONS = ("secretsmanager:", "ssm:", "kms:")
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:keys-AbCdEf"


def grants_of_keys(**parameters: str) -> dict[str, Any]:
    """What the functions may read keys from, by action."""
    given = [(s["Action"], s["Resource"]) for s in statements(stack(**parameters))]
    return {action: where for actions, where in given for action in actions if action.startswith(KEY_ACTIONS)}


def test_no_secret_may_be_read_until_one_is_named() -> None:
    assert grants_of_keys() == {}


def test_the_one_secret_that_is_named_may_be_read_and_no_other() -> None:
    assert grants_of_keys(ProviderKeysSecretArn=SECRET) == {"secretsmanager:GetSecretValue": SECRET}
    read = ("secretsmanager:GetSecretValue", "ssm:GetParameter")  # each reads what of the list is its own
    assert grants_of_keys(AccountKeyArns=f"{SECRET},{SECRET}2") == {key: [SECRET, SECRET + "2"] for key in read}


def test_the_one_parameter_that_is_named_may_be_read_and_no_other() -> None:
    arn = "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter${ProviderKeysParameter}"
    assert grants_of_keys(ProviderKeysParameter="/bastion/keys") == {"ssm:GetParameter": {"Fn::Sub": arn}}


def test_a_kms_key_of_ones_own_may_decrypt_and_nothing_else() -> None:
    assert grants_of_keys(ProviderKeysKmsKeyArn="arn:kms") == {"kms:Decrypt": "arn:kms"}


def test_no_key_stands_in_the_environment_only_where_it_is() -> None:
    properties = stack(ProviderKeysSecretArn=SECRET, ProviderKeysParameter="/keys")["StreamFunction"]["Properties"]
    variables = properties["Environment"]["Variables"]
    assert variables["BASTION_PROVIDER_KEYS_SECRET"] == SECRET
    assert variables["BASTION_PROVIDER_KEYS_PARAMETER"] == "/keys"
    assert "resolve:" not in json.dumps(stack(ProviderKeysSecretArn=SECRET))


def test_the_data_plane_cannot_write_api_keys() -> None:
    (write,) = [s for s in statements(stack()) if s["Sid"] == "WriteCalibrationAndSettings"]
    assert write["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["A#*"]}}


def test_the_api_may_call_the_functions_and_nobody_else_may() -> None:
    permissions = [r["Properties"] for r in stack().values() if r["Type"] == "AWS::Lambda::Permission"]
    assert {p["Principal"] for p in permissions} == {"apigateway.amazonaws.com", "events.amazonaws.com"}
    assert all(p.get("SourceArn") for p in permissions)


def test_functions_have_their_limits_layers_and_log_groups() -> None:
    resources = stack()
    functions = {n: r["Properties"] for n, r in resources.items() if r["Type"] == "AWS::Lambda::Function"}
    assert {name: (f["Timeout"], f["Runtime"]) for name, f in functions.items()} == {
        "ApiFunction": (29, "python3.13"),
        "StreamFunction": (900, "python3.13"),
    }
    for function in functions.values():
        assert [re.sub("[0-9a-f]{10}$", "", layer["Ref"]) for layer in function["Layers"]] == [
            "CoreLayer",
            "DepsLayer",
            "VocabLayer",
        ]
        group = resources[function["LoggingConfig"]["LogGroup"]["Ref"]]["Properties"]
        assert int(group["RetentionInDays"]) == 30
        assert function.get("TracingConfig") is None
    variables = functions["StreamFunction"]["Environment"]["Variables"]
    assert variables["AWS_LAMBDA_EXEC_WRAPPER"] == "/var/task/bastion/streaming-bootstrap"
    assert "AWS_LAMBDA_EXEC_WRAPPER" not in functions["ApiFunction"]["Environment"]["Variables"]


def test_optional_settings_are_absent_until_they_are_given() -> None:
    def names(**parameters: str) -> set[str]:
        return set(stack(**parameters)["ApiFunction"]["Properties"]["Environment"]["Variables"])

    optional = {"BASTION_CONFIG", "BASTION_PROVIDER_KEYS_SECRET", "BASTION_PROVIDER_KEYS_PARAMETER"}
    assert not names() & optional
    given = {"ConfigFile": "/opt/bastion.toml", "ProviderKeysSecretArn": SECRET, "ProviderKeysParameter": "/keys"}
    assert names(**given) >= optional
    assert names() >= {"BASTION_CONTROL_TABLE", "BASTION_CHATS_TABLE", "BASTION_VOCAB", "BASTION_CORS_ORIGINS"}


@pytest.mark.parametrize(("warm", "state"), [("false", "DISABLED"), ("true", "ENABLED")])
def test_the_ping_is_off_until_it_is_asked_for(warm: str, state: str) -> None:
    rules = [r["Properties"] for r in stack(KeepWarm=warm).values() if r["Type"] == "AWS::Events::Rule"]
    assert [rule["State"] for rule in rules] == [state, state]


@pytest.mark.parametrize("table", ["ControlTable", "ChatsTable"])
def test_tables_are_kept_protected_recoverable_and_expire(table: str) -> None:
    resource = nested("infra/tables.yaml")["Resources"][table]
    properties = resource["Properties"]
    assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"
    assert properties["DeletionProtectionEnabled"] is True
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]


def test_the_tables_stack_itself_outlives_the_one_that_made_it() -> None:
    assert stack()["Tables"]["DeletionPolicy"] == "Retain"


def test_the_apis_server_errors_raise_an_alarm() -> None:
    alarm = nested("infra/alarms.yaml")["Resources"]["ServerErrors"]["Properties"]
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == ("5XXError", "Average", 0.01)


def test_alarms_get_every_parameter_they_need() -> None:
    parameters = nested("infra/alarms.yaml")["Parameters"]
    for streaming in ("true", "false"):
        assert stack(Streaming=streaming)["Alarms"]["Properties"]["Parameters"].keys() == parameters.keys()
