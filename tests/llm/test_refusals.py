"""Refusals: their words, whether waiting can help, and the advice."""

from pathlib import Path

import pytest
from asking import WAYS, open_way

from code_commit.errors import LLMError
from code_commit.llm.endpoint import Endpoint, Reply
from code_commit.llm.refusals import RefusedRequestError, can_come, refusal_of
from code_commit.settings import Settings

HERE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("given", "way", "end"),
    [
        (HERE, "chat", "; try http://127.0.0.1:9/v1"),
        (f"{HERE}/v1", "chat", "(http://127.0.0.1:9/v1)"),
        (f"{HERE}/v1/chat/completions", "chat", "/chat/completions); leave /chat/completions out of it"),
        (f"{HERE}/v1/messages?a=b", "messages", "; leave /messages out of it"),
        (f"{HERE}/v1/interactions", "interactions", "; leave /interactions out of it"),
        (f"{HERE}/openai/deployments/d", "chat", "; Azure wants ?api-version=... at its end"),
        (f"{HERE}/openai/deployments/d?api-version=1", "chat", "d?api-version=1)"),
        (f"{HERE}/v1", "responses", "; if only Chat Completions are served there, name the model chat:gpt-6.2-sol"),
        ("", "responses", "(https://api.openai.com/v1)"),
    ],
)
def test_an_address_that_is_not_there_is_mended(given, way, end):
    with open_way(WAYS[way], given) as llm:
        assert str(refusal_of(Reply(404, {}, "not found"), llm._endpoint, 0.0)).endswith(end)


def test_a_refused_key_is_mended_where_it_comes_from():
    endpoint = Endpoint("m", "http://127.0.0.1:9/v1", Settings(), Path(), "", str)
    said = {
        source: str(refusal_of(Reply(401, {}, ""), endpoint._replace(key_source=source), 0.0))
        for source in ("OPENAI_API_KEY", "key_command")
    }
    assert said["OPENAI_API_KEY"].endswith("the key from OPENAI_API_KEY is refused: put a valid one there")
    assert "key_command printed is refused: run that command in a shell" in said["key_command"]


def refused(status, body, settings=None, model="m", *, key="a key file"):
    endpoint = Endpoint(model, "http://127.0.0.1:9/v1", settings or Settings(), Path(), key, str)
    return refusal_of(Reply(status, {}, body), endpoint, 1e9)


def error(message, **more):
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, error("Request too large on tokens per min (TPM): Limit 30000, Requested 36278."), "too_long"),
        (413, error("Request too large on tokens per minute (TPM): Limit 6000, Requested 7000"), "too_long"),
        (500, error("The input token count exceeds the maximum number of tokens allowed"), "too_long"),
        (400, {"message": "Please reduce the messages: the length is 8500 while the limit is 8192"}, "too_long"),
        (400, error("the string of metadata.user is too long, at most 64 characters"), "refused"),
        (429, error("Quota exceeded for metric x, limit: 0. Please retry in 1.2s."), "quota"),
        (429, error("Rate limit exceeded: free-models-per-day"), "quota"),
        (500, error("insufficient balance (1008)"), "quota"),
        (403, error("用户余额不足"), "quota"),
        (400, error("Prompt 超长"), "too_long"),
        (429, error("Budget has been exceeded!", type="budget_exceeded"), "quota"),
        (429, error("You exceeded your current quota, please check your plan and billing details."), "quota"),
        (200, {"base_resp": {"status_code": 1004, "status_msg": "invalid api key"}}, "key"),
        (503, error("No available channel for model m under group default"), "refused"),
        (200, {"code": 20012, "message": "Model does not exist", "data": None}, "refused"),
        (422, error("`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 and 512"), "too_long"),
        (400, error("the input token count is 1200000 but model only supports up to 1048576"), "too_long"),
        (400, {"code": 20015, "message": "length of prompt_tokens (40000) must be below 32768"}, "too_long"),
        (400, error("Access denied, make sure your account is in good standing.", code="Arrearage"), "quota"),
        (429, {"message": "You are using a trial key, limited to 1000 calls / month."}, "quota"),
        (429, error("您今日的请求次数已用完"), "quota"),
        (429, error("Your access was terminated due to violation of our policies"), "key"),
        (401, error("Insufficient balance"), "quota"),
        (429, error("You have no credits remaining", code="credit_balance_exhausted"), "quota"),
        (400, error("Current token count exceeds your organization quota"), "quota"),
        (400, error("Authentication Error - Expired Key. Expiry time 2025-01-01"), "key"),
        (500, error("model requires more system memory (8.4 GiB) than is available (5.7 GiB)"), "refused"),
        (400, error("total message size 10176584 exceeds limit 2097152"), "too_long"),
        (200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}, "refused"),
        (429, error("Quota exceeded for requests_per_day_per_project with base model: m"), "quota"),
        (403, error("Key limit exceeded (total limit). Manage it using https://a.example.org/keys"), "quota"),
        (403, error("This key has reached its spend cap"), "quota"),
        (200, error("Key limit exceeded (total limit)", code=403), "quota"),
        (403, error("This key is limited to other models"), "key"),
        (403, error("Permission 'predict' denied on resource 'models/m' (or it may not exist)."), "key"),
        (429, error("Please retry in 1.2s.", details=[{"quotaId": "RequestsPerDayPerProject-FreeTier"}]), "quota"),
        (401, error("Unknown session, please try again later"), "key"),
        (429, error('{"details": [{"quotaId": "RequestsPerDayPerModel"}, {"retryDelay": "2s"}]}'), "quota"),
        (429, error('Limit: - {"quotaId": "RequestsPerDayPerModel"} of m'), "quota"),
        (429, error("You exceeded your quota, check your plan and billing", type="throttling_error"), "quota"),
        (429, {"title": "Too Many Requests", "detail": "Quota exceeded, check your plan and billing"}, "quota"),
        (402, error("Prompt tokens limit exceeded: 36163 > 29652. To increase it, add more"), "quota"),
        (403, error("该令牌额度已用尽"), "quota"),
        (403, error('Your input was flagged for "violence". No credits were charged.'), "key"),
        (200, {"error_code": 110, "error_msg": "Access token invalid or no longer valid"}, "key"),
        (
            404,
            error("No such deployment here. If you made it just now, please wait a moment and try again."),
            "refused",
        ),
        (403, error("This key is new here. If you have just made it, try again later. Else ask us."), "key"),
    ],
)
def test_what_waiting_cannot_change_is_told_by_what_it_speaks_of(status, body, kind):
    refusal = refused(status, body)
    assert isinstance(refusal, LLMError)
    assert refusal.kind == kind


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, error("Rate limit on tokens per min (TPM): Limit 30000, Used 29500, Requested 2000.")),
        (429, error("You exceeded your current quota, check your billing. limit: 15. Please retry in 34s.")),
        (429, error("Resource has been exhausted (e.g. check quota).", status="RESOURCE_EXHAUSTED")),
        (429, error("Rate limit reached for requests per min. Add a payment method to raise it.")),
        (429, error("too many requests, maximum number of concurrent requests exceeded")),
        (503, error("The model is not available at the moment, try again later")),
        (429, error('{"error": {"message": "Exceeded your quota, check your billing", "retryDelay": "2s"}}')),
        (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
        (500, error("Your request exceeded the time limit")),
        (529, error("Overloaded", type="overloaded_error")),
        (429, error("Quota exceeded for requests_per_base_model.", status="RESOURCE_EXHAUSTED")),
        (429, error("Rate limited. Purchase credits to raise the limit.")),
        (429, error("Quota exceeded for a.example.org/requests_per_minute_per_project with base model: m")),
        (429, error("Purchase credits for more free-models-per-min", code=429)),
        (429, error("RESOURCE_EXHAUSTED: quota exceeded", code=429)),
        (400, {"__type": "ThrottlingException", "message": "Rate exceeded"}),
        (400, error("Too many requests", code="rate_limit_exceeded")),
        (403, {"message": "API rate limit exceeded"}),
        (400, error("Error code: 429 - {'error': {'message': 'Rate limit reached for requests'}}")),
        (429, error("The service said: Resource exhausted, check the quota of the project")),
        (400, error("The model is busy, try again later")),
        (200, error("ThrottlingException: Too many tokens, please wait before trying again.")),
        (400, {"__type": "ThrottlingException", "message": "Too many tokens, please wait before trying again."}),
        (429, {"code": "Throttling.AllocationQuota", "message": "Allocated quota exceeded, please ask for more."}),
        (403, {"message": "Out of call volume quota. Quota will be replenished in 00:10:00."}),
        (500, error("generated 1200 tokens of 4096, then the worker died")),
        (500, error("llama runner process has terminated: signal: killed")),
    ],
)
def test_what_passes_is_waited_for(status, body):
    assert not isinstance(refused(status, body), RefusedRequestError)


@pytest.mark.parametrize(
    "body",
    [
        {"message": "The provided model identifier is invalid."},
        error("{'error': 'Invalid model name passed in model=gpt-9'}", type="None", param="None", code="400"),
        error('{"error": {"message": "m:free is not a valid model ID", "code": 400}}'),
    ],
)
def test_a_model_that_is_unknown_is_told_in_any_words(body):
    assert "check the name of the model (m): --model" in str(refused(400, body))


@pytest.mark.parametrize("model", ["budget", "free/credits-daily", "prompt-too-long"])
def test_the_name_of_the_model_is_no_reason(model):
    body = error(f"Invalid model name passed in model={model}")
    assert f"check the name of the model ({model}): --model" in str(refused(400, body, model=model))


@pytest.mark.parametrize(
    "words",
    [
        "Invalid token at line 1 column 2000 of 40000 bytes",
        "temperature: must be less than or equal to 2",
        "thinking.budget_tokens: Input should be greater than or equal to 1024",
        "Budget 0 is invalid. This model only works in thinking mode.",
        "{'type': 'json_invalid', 'input': {}, 'error': 'Expecting value: line 1 column 301306 (char 301305)'}",
        "Error code: 400 - the input of message 1 has no text, see log 7345",
        "the prompt of request 88123 has no user's message",
    ],
)
def test_a_refusal_of_a_form_is_no_refusal_of_a_size(words):
    assert refused(400, error(words, code=400)).kind == "refused"


@pytest.mark.parametrize(
    ("words", "period"),
    [
        ("free-models-per-day", "day"),
        ("reached organization TPD rate limit, current: 1526210, limit: 1500000", "day"),
        ("Weekly limit reached", "week"),
        ("已达到本周使用上限", "week"),
        ("has used all credits or reached its monthly spending limit", "month"),
        ("limited to 1000 calls / month", "month"),
    ],
)
def test_a_quota_that_is_used_up_is_told_with_its_period(words, period):
    refusal = refused(429, error(words))
    assert refusal.kind == "quota"
    assert f"the quota of the {period} is used up: continue when the next one begins, or raise" in str(refusal)


@pytest.mark.parametrize(
    "body",
    [
        {"error": "Model grok-4 does not support parameter reasoningEffort."},
        error('Model "m" does not support reasoning effort "high", accepted values: low, max'),
        error("thinking_level is not supported for this model"),
        error("Extra inputs are not permitted", param="output_config.effort"),
        error("Unsupported parameter: 'reasoning_effort'. Try again with the new parameter."),
        error("adaptive thinking is not supported on this model"),
        {"detail": [{"loc": ["body", "reasoning_effort"], "msg": "Input should be 'low' or 'max'"}]},
    ],
)
def test_a_refused_effort_is_told_where_one_was_asked_for(body):
    way = "; m does not accept it: omit --reasoning-effort high, or use another value"
    assert str(refused(400, body, Settings(reasoning_effort="high"))).endswith(way)
    assert way not in str(refused(400, body))


def test_the_name_of_a_model_that_thinks_is_no_effort():
    body = error("The model `example-2-thinking` does not exist")
    refusal = refused(404, body, Settings(reasoning_effort="high"), "a/example-2-thinking")
    assert "check the name of the model" in str(refusal)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_an_effort_that_a_busy_server_makes_is_not_the_user_s(status):
    refusal = refused(status, error("We make every effort to restore it."), Settings(reasoning_effort="high"))
    assert not isinstance(refusal, RefusedRequestError)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("body", [error("key not allowed here", param="model"), error("team may not access m")])
def test_a_key_that_may_not_use_the_model_is_a_valid_one(status, body):
    refusal = refused(status, body)
    assert refusal.kind == "key"
    assert "the key may not use m, or not from here" in str(refusal)


@pytest.mark.parametrize("key", ["", "a key file"])
@pytest.mark.parametrize("status", [400, 401, 403, 422])
@pytest.mark.parametrize("words", ["missing header X-Team", "The X-Cost-Center header is required", "no header X-Team"])
def test_a_header_that_is_wanted_is_named_in_the_settings(words, status, key):
    said = str(refused(status, error(words), key=key))
    assert "follow the server's message, and add a header under [headers] in your own config.toml; if it gives" in said


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("Missing Authorization header", code="authentication_error")),
        (401, error("Missing Authorization header", code="authentication_error")),
        (401, error("You have to provide yours in an Authorization header, as a bearer")),
        (401, error("No auth header of m")),
    ],
)
def test_the_header_of_a_key_is_a_key(status, body):
    said = str(refused(status, body, key=""))
    assert "it requires a key: write one into" in said
    assert "[headers]" not in said


@pytest.mark.parametrize(
    "words", ["API Key not allowed to access model. Tried m", "Incorrect API key of another. Group: m"]
)
def test_a_key_that_is_refused_for_a_model_is_not_called_invalid(words):
    said = str(refused(401, error(words)))
    assert "follow the server's message; if it gives no advice, the key may not use m" in said


@pytest.mark.parametrize("words", ["Public access is disabled.", "Key based authentication is disabled here."])
def test_what_is_disabled_with_status_403_is_no_closed_account(words):
    refusal = refused(403, error(words))
    assert refusal.kind == "key"
    assert "closed" not in str(refusal)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "max_tokens: Field required"),
        (400, "The maximum tokens you requested exceeds the model limit of 4096"),
        (400, "At most 8192. However, you requested 6000 output tokens and your prompt has 3000"),
        (402, "This needs more credits, or fewer max_tokens. It can only afford 30104"),
        (413, "The estimated number of input and maximum output tokens (30000) exceeded this limit (24000)"),
        (413, "Too large on tokens per minute (TPM): Limit 8000, Requested 32979, please reduce your message"),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 6000 and 4096"),
        (429, "Request too large on tokens per min (TPM): Limit 30000, Requested 342389"),
    ],
)
def test_a_limit_of_the_answer_is_named(status, words):
    assert "--max-output-tokens" in str(refused(status, error(words))).partition(words)[2]


@pytest.mark.parametrize("title", ["500 Internal Server Error", "502 Bad Gateway", "We are being restarted"])
def test_a_page_of_a_server_s_error_may_pass_whatever_its_status(title):
    assert can_come(f"<html><head><title>{title}</title></head></html>")
    assert not can_come("<html><head><title>Sign in to 127</title></head></html>")


@pytest.mark.parametrize(
    ("words", "key", "told"),
    [
        ("Your team has not signed the policy", "", "no key was sent: if the server requires one, write one into"),
        ("forbidden", "", "no key was sent: if the server requires one, write one into"),
        ("", "a key file", "check its rights"),
        (
            "not allowed",
            "a key file",
            "not allowed; follow the server's message; if it gives no advice, the key may not use m",
        ),
    ],
)
def test_a_403_speaks_of_the_rights_of_a_key_that_was_sent_and_first_of_its_own_words(words, key, told):
    said = str(refused(403, error(words), key=key))
    assert told in said
    assert ("its rights" in said) == bool(key)


def test_the_field_of_a_form_is_named():
    body = {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted", "type": "extra"}]}
    assert "extra fields not permitted; the request was not accepted (it names stream_options), and" in str(
        refused(422, body)
    )
    body["detail"][0]["msg"] = "stream_options is not permitted"
    assert "it names" not in str(refused(422, body))


@pytest.mark.parametrize("status", [400, 422])
def test_a_refusal_of_a_parameter_is_not_of_money_that_it_quotes(status):
    refusal = refused(status, error("Invalid value: 'payment required' or 'budget'", param="tool_choice"))
    assert refusal.kind == "refused"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"detail": [{"type": "missing", "loc": ["body", "a"], "msg": "Field required"}]}, "Field required"),
        ({"message": {"detail": [{"msg": "Extra inputs are not permitted"}]}}, "Extra inputs are not permitted"),
        ({"fault": {"faultstring": "Invalid Login"}}, '{"fault": {"faultstring": "Invalid Login"}}'),
        ({"success": False, "errors": [{"code": 2001, "message": "Configure the gateway"}]}, "Configure the gateway"),
        ({"error": "the template is broken"}, "the template is broken"),
        ({"error": '{"error": {"message": "no such tenant", "code": 400}, "user_id": "user_2"}'}, "no such tenant"),
        ({"a": {"b": [{"c": "under another name"}]}}, "under another name"),
        ({"fault": {"faultstring": "Rejected by policy seven"}}, "Rejected by policy seven"),
        ({"errors": {"base": ["This tenant is gone"]}}, "This tenant is gone"),
        ("<html><head><title>Access blocked</title></head></html>", "Access blocked"),
        ("<title>Error</title><pre>TooLargeError: no such thing<br> at x</pre>", "TooLargeError: no such thing"),
        ("<title>Forbidden</title><h1>Forbidden</h1>", "Forbidden"),
        ("<html><style>a b { c }</style><body><h1>No such tenant here</h1></body></html>", "No such tenant here"),
        ("<?xml version='1.0'?><Error><Code>X</Code><Message>No such bucket</Message></Error>", "No such bucket"),
        ("upstream connect error", "upstream connect error"),
        ({"error": {"code": "no_such_thing"}}, "no_such_thing"),
    ],
)
def test_its_words_are_shown_wherever_they_stand(body, words):
    assert f"answered 400: {words}; " in str(refused(400, body))
