"""Tokenise prompt and answer together, and take what they do not share: the seam can merge."""

VOCAB = ["<eos>", "2", "+", "=", "4", "=4", " ", "5", "=5"]  # greedy longest match, like a merged BPE pair


def encode(text):
    ids = []
    while text:
        piece = max((p for p in VOCAB if text.startswith(p)), key=len)
        ids.append(VOCAB.index(piece))
        text = text[len(piece) :]
    return ids


def show(ids):
    return [VOCAB[i] for i in ids]


prompt, answer = "2+2=", "4<eos>"
print("apart   ", show(encode(prompt) + encode(answer)))
together = encode(prompt + answer)
print("together", show(together))

alone = encode(prompt)
shared = 0
while shared < min(len(alone), len(together)) and alone[shared] == together[shared]:
    shared += 1
print("mask by len(prompt):   answer =", show(together[len(alone) :]))
print("mask by shared prefix: answer =", show(together[shared:]))
