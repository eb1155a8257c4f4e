"""Shows the requests in ../requests to the types of the providers' own libraries.

Run by `cargo xtask test --wire`, which installs openai, anthropic and google-genai. Exits 1 if a request does not fit: a
field that the library does not know, a wrong type, or something missing.
"""

import importlib
import json
import pathlib
import pkgutil
import sys
import typing

import pydantic
import typing_extensions

REQUESTS = pathlib.Path(__file__).parent.parent / "requests"


def forbid_unknown_fields(package: str) -> None:
    """A typed dict takes unknown keys unless it is told not to; so every one of the library is told."""
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, package + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if typing_extensions.is_typeddict(value):
                value.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def strict(package: str, params: typing.Any) -> pydantic.TypeAdapter:
    forbid_unknown_fields(package)
    return pydantic.TypeAdapter(params)


def messages(body: dict) -> None:
    from anthropic.types import message_create_params as params

    adapter = strict("anthropic.types", params.MessageCreateParamsStreaming)
    consume(adapter.validate_python(body))


def chat(body: dict) -> None:
    from openai.types.chat import completion_create_params as params

    adapter = strict("openai.types", params.CompletionCreateParamsStreaming)
    consume(adapter.validate_python(body))


def responses(body: dict) -> None:
    from openai.types.responses import response_create_params as params

    adapter = strict("openai.types", params.ResponseCreateParamsStreaming)
    consume(adapter.validate_python(body))


def gemini(body: dict) -> None:
    from google.genai import types

    known = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
    unknown = set(body) - known
    assert not unknown, f"unknown fields {unknown}"
    for content in body["contents"]:
        types.Content.model_validate(content)
    if "systemInstruction" in body:
        types.Content.model_validate(body["systemInstruction"])
    for tool in body.get("tools", []):
        types.Tool.model_validate(tool)
    if "toolConfig" in body:
        types.ToolConfig.model_validate(body["toolConfig"])
    if "generationConfig" in body:
        types.GenerationConfig.model_validate(body["generationConfig"])


def consume(value: typing.Any) -> None:
    """Lists in typed dicts are checked only when they are read."""
    if isinstance(value, (str, bytes)) or value is None:
        return
    if isinstance(value, dict):
        for item in value.values():
            consume(item)
    elif hasattr(value, "__iter__"):
        for item in value:
            consume(item)


CHECKS = {"messages": messages, "chat": chat, "responses": responses, "gemini": gemini}


def main() -> int:
    failed = 0
    for wire, check in CHECKS.items():
        for path in sorted(REQUESTS.glob(f"{wire}*.json")):
            try:
                check(json.loads(path.read_text()))
                print(f"{path.name}: accepted")
            except (pydantic.ValidationError, AssertionError) as error:
                failed += 1
                print(f"{path.name}: REFUSED\n{error}")
    # A check that can't fail shows nothing: each must refuse a request with a field that does not exist.
    for wire, check in CHECKS.items():
        body = json.loads((REQUESTS / f"{wire}.json").read_text())
        conversation = body.get("messages") or body.get("input") or body.get("contents")
        conversation[0]["no_such_field"] = 1
        try:
            check(body)
        except (pydantic.ValidationError, AssertionError):
            continue
        failed += 1
        print(f"{wire}: a wrong request was accepted")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
