"""Counts texts and chats with the tokenizer in a folder and with the server's own."""
import json, random, sys, urllib.request
from transformers import AutoTokenizer

url, folder = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)


def count(**body):
    request = urllib.request.Request(url + "/tokenize", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))["count"]


draw = random.Random(1)
texts = ["Hello world", " abc def", "def f(x):\n    return x\n"]
texts += ["".join(draw.choice(" ab\n\té漢👩xyz.,") for _ in range(draw.randint(1, 60))) for _ in range(100)]
for text in texts:
    ours, theirs = count(prompt=text), len(tokenizer(text)["input_ids"])
    assert ours == theirs, (text, ours, theirs)
    sent = tokenizer.decode(tokenizer.encode(text)[:20], skip_special_tokens=True)
    assert count(prompt=sent) == min(ours, 20), (text, sent)
ids = [draw.randrange(17576) for _ in range(50)]
assert tokenizer.encode(tokenizer.decode(ids)) == ids
chat = [{"role": "system", "content": "You are"}, {"role": "user", "content": "hi there\nyou"}, {"role": "assistant", "content": " abc def"}, {"role": "user", "content": "x"}]
text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
assert count(messages=chat) == len(tokenizer(text)["input_ids"])
print("alike")
