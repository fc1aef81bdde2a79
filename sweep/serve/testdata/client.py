"""Reads a server with the official OpenAI client and prints one JSON object."""
import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
exact = {"ignore_eos": True}
hello = [{"role": "user", "content": "hello there"}]
out = {"models": [m.id for m in client.models.list()]}


def read(chunks, text_of):
    text, events, reason, usage = "", 0, None, None
    for chunk in chunks:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            events += 1
            text += text_of(choice) or ""
            reason = choice.finish_reason or reason
    return {"text": text, "events": events, "reason": reason, "prompt": usage.prompt_tokens, "completion": usage.completion_tokens}


counted = {"stream": True, "stream_options": {"include_usage": True}}
out["chatStream"] = read(client.chat.completions.create(model="m", messages=hello, max_tokens=6, extra_body=exact, **counted), lambda c: c.delta.content)
out["stream"] = read(client.completions.create(model="m", prompt=[1, 2, 3], max_tokens=5, extra_body=exact, **counted), lambda c: c.text)
chat = client.chat.completions.create(model="m", messages=hello, max_tokens=6, extra_body=exact)
out["chat"] = {"text": chat.choices[0].message.content, "reason": chat.choices[0].finish_reason, "completion": chat.usage.completion_tokens}
whole = client.completions.create(model="m", prompt=[1, 2, 3], max_tokens=5, extra_body=exact)
out["whole"] = {"text": whole.choices[0].text, "reason": whole.choices[0].finish_reason, "completion": whole.usage.completion_tokens}

errors = []
for options in ({"model": "x"}, {"n": 2}, {"extra_headers": {"X-Planner-Fault": "error=429"}}, {"stream": True, "extra_headers": {"X-Planner-Fault": "event=2"}}):
    try:
        answer = client.completions.create(**({"model": "m", "prompt": "x"} | options))
        if "stream" in options:
            list(answer)
        errors.append("none")
    except openai.APIError as e:
        errors.append(type(e).__name__)
out["errors"] = errors
print(json.dumps(out))
