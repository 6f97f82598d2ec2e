"""Google's wire format as its documentation tells of it: `:generateContent`, `:streamGenerateContent` and `:batchEmbedContents`.

After https://ai.google.dev/api and the guides on function calling, thought signatures, thinking, structured output, image, audio and document
understanding, and embeddings.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from typing import Any
from urllib.parse import parse_qsl

from tests.wire.formats import (
    Known,
    Received,
    Refused,
    Say,
    check_base64,
    check_fields,
    json_body,
    pieces_of,
    vector,
    words_in,
)

NUMBER = (int, float)
BODY_FIELDS: Known = {
    "contents": list,
    "systemInstruction": dict,
    "tools": list,
    "toolConfig": dict,
    "generationConfig": dict,
    "safetySettings": list,
}
CONFIG_FIELDS: Known = {
    "temperature": NUMBER,
    "topP": NUMBER,
    "topK": NUMBER,
    "maxOutputTokens": int,
    "candidateCount": int,
    "stopSequences": list,
    "seed": int,
    "responseMimeType": str,
    "responseSchema": dict,
    "responseJsonSchema": dict,
    "thinkingConfig": dict,
}
PART_FIELDS: Known = {
    "text": str,
    "thought": bool,
    "thoughtSignature": str,
    "inlineData": dict,
    "functionCall": dict,
    "functionResponse": dict,
}
SCHEMA_FIELDS: Known = {
    "type": str,
    "format": str,
    "title": str,
    "description": str,
    "nullable": bool,
    "enum": list,
    "maxItems": int,
    "minItems": int,
    "properties": dict,
    "required": list,
    "minProperties": int,
    "maxProperties": int,
    "minLength": int,
    "maxLength": int,
    "pattern": str,
    "anyOf": list,
    "propertyOrdering": list,
    "items": dict,
    "minimum": NUMBER,
    "maximum": NUMBER,
}
SCHEMA_TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT")
MEDIA_TYPES = (
    *(f"image/{kind}" for kind in ("png", "jpeg", "webp", "heic", "heif")),
    *(f"audio/{kind}" for kind in ("wav", "mp3", "aiff", "aac", "ogg", "flac")),
    "application/pdf",
    "text/plain",
)
MODELS = (
    "gemini-2.0-flash",
    "gemini-2.5-flash",
    "gemini-3-flash",
    "gemini-3.8-flash",
    "gemini-4-neon",
    "gemini-embedding-001",
)
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
UNCHECKED = "skip_thought_signature_validator"
BATCH = 100
DIMENSIONS = 8
PATH = re.compile(
    r"/v1(?:beta)?/models/([\w.-]+):(generateContent|streamGenerateContent|batchEmbedContents)(?:\?(.*))?"
)


def signed(name: str) -> str:
    """Return the signature of a call."""
    return b64encode(f"signed {name}".encode()).decode()


def camel(value: Any) -> Any:
    """Return a message with its fields in camel case: both ways of writing them are taken, as everywhere in JSON of protocol buffers."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, item in value.items():
        key = re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
        if key in ("args", "response", "parametersJsonSchema", "responseJsonSchema"):
            found[key] = item
        elif key == "properties" and isinstance(item, dict):
            found[key] = {inner: camel(each) for inner, each in item.items()}
        else:
            found[key] = camel(item)
    return found


class GoogleFormat:
    """See the module. The request that ``check`` returns has two more keys: `_model` and `_streams`."""

    first = 0
    stream_type = "text/event-stream"

    def check(self, received: Received, key: str | None, *, own: bool) -> dict[str, Any]:
        """Return the request's JSON."""
        found = PATH.fullmatch(received.path)
        if found is None:
            raise Refused(404, f"no such path: {received.path}")
        model, operation, query = found[1], found[2], dict(parse_qsl(found[3] or ""))
        if received.method != "POST":
            raise Refused(405, "Method Not Allowed")
        if key is not None and received.headers.get("x-goog-api-key") != key:
            raise Refused(400, "API key not valid. Please pass a valid API key.")
        streams = operation == "streamGenerateContent"
        if query != ({"alt": "sse"} if streams else {}):
            raise Refused(400, f"query parameters that aren't known here: {query}")
        if model not in MODELS:
            raise Refused(
                404, f"models/{model} is not found for API version v1beta, or is not supported for {operation}"
            )
        body = camel(json_body(received))
        if operation == "batchEmbedContents":
            _check_embeddings(body, model)
        else:
            _check_content(body, model)
        return {**body, "_model": model, "_streams": streams}

    def whole(self, received: Received, request: dict[str, Any], say: Say) -> dict[str, Any]:
        """Return the whole answer."""
        if "requests" in request:
            return {"embeddings": [{"values": _vector(one)} for one in request["requests"]]}
        return _answer(request, say, _parts(say), say.finish or "STOP")

    def frames(self, request: dict[str, Any], say: Say) -> list[bytes]:
        """Return a streamed answer: thoughts, the text, the calls, each in events of the same form."""
        groups: list[list[dict[str, Any]]] = []
        for part in _parts(say):
            if set(part) <= {"text", "thought"}:
                groups.extend([[{**part, "text": piece}] for piece in pieces_of(part["text"])])
            else:
                groups.append([part])
        groups = groups or [[{"text": ""}]]
        reasons = [None] * (len(groups) - 1) + [say.finish or "STOP"]
        answers = [_answer(request, say, parts, reason) for parts, reason in zip(groups, reasons, strict=True)]
        return [self.frame(json.dumps(answer, ensure_ascii=False)) for answer in answers]

    def frame(self, data: str) -> bytes:
        """Return one event of that data."""
        return f"data: {data}\r\n\r\n".encode()

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """Return the body of a refusal."""
        return {"error": {"code": status, "message": message, "status": STATUSES.get(status, "UNKNOWN"), "details": []}}

    def streams(self, request: dict[str, Any]) -> bool:
        """Tell whether a request asks for a stream."""
        return bool(request.get("_streams"))


def _parts(say: Say) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if say.reasoning:
        parts.append({"text": say.reasoning, "thought": True})
    if say.text:
        parts.append({"text": say.text})
    for at, call in enumerate(say.calls):
        made: dict[str, Any] = {"name": call.name, "args": json.loads(call.arguments)}
        if call.id:
            made["id"] = call.id
        parts.append({"functionCall": made, **({"thoughtSignature": signed(call.name)} if at == 0 else {})})
    return parts


def _answer(request: dict[str, Any], say: Say, parts: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    prompt = words_in([content["parts"] for content in request["contents"]])
    reply, thoughts = len(say.text.split()) + len(say.calls), len(say.reasoning.split())
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": reply, "totalTokenCount": prompt + reply + thoughts}
    if thoughts:
        usage["thoughtsTokenCount"] = thoughts
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": request["_model"] + "-001",
        "responseId": "r1",
        **say.more,
    }


def _vector(one: dict[str, Any]) -> list[float]:
    return vector(one["content"]["parts"][0]["text"], one.get("outputDimensionality", DIMENSIONS))


def _check_embeddings(body: dict[str, Any], model: str) -> None:
    check_fields(body, {"requests": list}, ("requests",), "")
    if len(body["requests"]) > BATCH:
        raise Refused(400, f"BatchEmbedContentsRequest.requests: at most {BATCH} requests can be in one batch")
    for one in body["requests"]:
        known: Known = {"model": str, "content": dict, "taskType": str, "title": str, "outputDimensionality": int}
        check_fields(one, known, ("model", "content"), "requests")
        if one["model"] != f"models/{model}":
            raise Refused(400, "BatchEmbedContentsRequest.requests.model: must match the model in the path")
        check_fields(one["content"], {"parts": list, "role": str}, ("parts",), "requests.content")
        for part in one["content"]["parts"]:
            check_fields(part, {"text": str}, (), "requests.content.parts")


def _check_content(body: dict[str, Any], model: str) -> None:
    check_fields(body, BODY_FIELDS, ("contents",), "")
    newer = not model.startswith(("gemini-1", "gemini-2"))
    if "systemInstruction" in body:
        check_fields(body["systemInstruction"], {"parts": list, "role": str}, ("parts",), "systemInstruction")
        for part in body["systemInstruction"]["parts"]:
            check_fields(part, {"text": str}, ("text",), "systemInstruction.parts")
    _check_turns(body["contents"], newer)
    for tool in body.get("tools", ()):
        check_fields(tool, {"functionDeclarations": list}, ("functionDeclarations",), "tools")
        for declared in tool["functionDeclarations"]:
            known: Known = {"name": str, "description": str, "parameters": dict, "parametersJsonSchema": dict}
            check_fields(declared, known, ("name",), "tools.functionDeclarations")
            if not re.fullmatch(r"[a-zA-Z_][\w.:-]{0,127}", declared["name"]):
                raise Refused(400, "Invalid function name. Must start with a letter or an underscore.")
            if "parameters" in declared:
                _check_schema(declared["parameters"], "parameters")
    if "toolConfig" in body:
        check_fields(body["toolConfig"], {"functionCallingConfig": dict}, ("functionCallingConfig",), "toolConfig")
        config = body["toolConfig"]["functionCallingConfig"]
        check_fields(config, {"mode": str, "allowedFunctionNames": list}, ("mode",), "functionCallingConfig")
        names = [each["name"] for tool in body.get("tools", ()) for each in tool["functionDeclarations"]]
        if config["mode"] not in ("AUTO", "ANY", "NONE") or set(config.get("allowedFunctionNames", ())) - set(names):
            raise Refused(400, "Invalid function calling config")
    config = body.get("generationConfig", {})
    _check_config(config, newer, bool(body.get("tools")))
    if model.startswith("gemini-4") and "thinkingBudget" in config.get("thinkingConfig", {}):
        raise Refused(400, "Thinking budget is not supported for this model. Please use thinking level instead.")


def _check_config(config: dict[str, Any], newer: bool, has_tools: bool) -> None:
    check_fields(config, CONFIG_FIELDS, (), "generationConfig")
    if not 0 <= config.get("temperature", 0) <= 2 or config.get("maxOutputTokens", 1) < 1:
        raise Refused(400, "generationConfig: a number is out of range")
    if "responseSchema" in config:
        if config.get("responseMimeType") != "application/json":
            raise Refused(400, "generationConfig.responseSchema: needs a response mime type of application/json")
        _check_schema(config["responseSchema"], "generationConfig.responseSchema")
    if has_tools and config.get("responseMimeType") == "application/json" and not newer:
        raise Refused(400, "Function calling with a response mime type: 'application/json' is unsupported")
    thinking = config.get("thinkingConfig", {})
    known: Known = {"includeThoughts": bool, "thinkingBudget": int, "thinkingLevel": str}
    check_fields(thinking, known, (), "thinkingConfig")
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        raise Refused(400, "You can only set only one of thinking budget and thinking level.")
    if "thinkingLevel" in thinking:
        if not newer:
            raise Refused(400, "Thinking level is not supported for this model.")
        if thinking["thinkingLevel"].lower() not in ("minimal", "low", "medium", "high"):
            raise Refused(400, "Invalid value at 'generation_config.thinking_config.thinking_level'")
    if thinking.get("thinkingBudget", -1) < -1:
        raise Refused(400, "The thinking budget is invalid")


def _check_schema(schema: Any, where: str) -> None:
    for name in schema if isinstance(schema, dict) else ():
        if name not in SCHEMA_FIELDS:
            raise Refused(
                400, f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field."
            )
    check_fields(schema, SCHEMA_FIELDS, (), where)
    if "type" in schema and schema["type"] not in SCHEMA_TYPES:
        raise Refused(400, f"Invalid value at '{where}.type' (type.googleapis.com/google.ai.generativelanguage.Type)")
    if schema.get("type") == "OBJECT" and not schema.get("properties"):
        raise Refused(400, f"{where}.properties: should be non-empty for OBJECT type")
    if schema.get("type") == "ARRAY" and "items" not in schema:
        raise Refused(400, f"{where}.items: missing field.")
    if set(schema.get("required", ())) - set(schema.get("properties", {})):
        raise Refused(400, f"{where}.required: property is not defined")
    if "enum" in schema and (
        schema.get("type") != "STRING" or not all(isinstance(one, str) and one for one in schema["enum"])
    ):
        raise Refused(400, f"{where}.enum: only allowed for STRING type")
    for name, below in schema.get("properties", {}).items():
        _check_schema(below, f"{where}.properties[{name}]")
    for below in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]:
        _check_schema(below, where)


def _check_turns(contents: list[Any], newer: bool) -> None:
    before: list[dict[str, Any]] = []
    for at, content in enumerate(contents):
        check_fields(content, {"role": str, "parts": list}, ("parts",), f"contents[{at}]")
        role = content.get("role", "user")
        if role not in ("user", "model"):
            raise Refused(400, "Please use a valid role: user, model.")
        if at == 0 and role != "user":
            raise Refused(400, "Please ensure that the conversation begins with a user turn.")
        for part in content["parts"]:
            _check_part(part, role)
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        if [(one["name"], one.get("id")) for one in answers] != [(one["name"], one.get("id")) for one in before]:
            raise Refused(
                400,
                "Please ensure that the number of function response parts is equal to the number of function call parts of "
                "the function call turn.",
            )
        if calls and newer:
            first = next(part for part in content["parts"] if "functionCall" in part)
            if first.get("thoughtSignature") not in (signed(calls[0]["name"]), UNCHECKED):
                raise Refused(
                    400,
                    f"Function call is missing a thought_signature in functionCall parts. Additional data, function call "
                    f"`default_api:{calls[0]['name']}`, position {at}.",
                )
        before = calls
    if before:
        raise Refused(400, "Please ensure that function call turn is followed by its function responses.")


def _check_part(part: Any, role: str) -> None:
    check_fields(part, PART_FIELDS, (), "contents.parts")
    kinds = [name for name in ("text", "inlineData", "functionCall", "functionResponse") if name in part]
    if len(kinds) != 1:
        raise Refused(400, "contents.parts: contents.parts must have exactly one initialized field `data`")
    kind = kinds[0]
    if (kind == "functionCall" and role != "model") or (kind in ("functionResponse", "inlineData") and role != "user"):
        raise Refused(400, f"contents.parts: `{kind}` does not belong into a turn of the {role}")
    if kind == "inlineData":
        check_fields(part[kind], {"mimeType": str, "data": str}, ("mimeType", "data"), "inlineData")
        check_base64(part[kind]["data"], "inlineData.data")
        if part[kind]["mimeType"] not in MEDIA_TYPES:
            raise Refused(400, f"Unsupported MIME type: {part[kind]['mimeType']}")
    elif kind == "functionCall":
        check_fields(part[kind], {"id": str, "name": str, "args": dict}, ("name",), "functionCall")
    elif kind == "functionResponse":
        check_fields(part[kind], {"id": str, "name": str, "response": dict}, ("name", "response"), "functionResponse")
    if "thoughtSignature" in part:
        b64decode(part["thoughtSignature"].replace("_", "/").replace("-", "+"), validate=True)
