r"""Record what TRL's own `DPOTrainer` computes, for tests/llmcore/test_dpo.py.

    python tests/llmcore/record_trl.py

needs the dependency group `record` and no network; it rewrites tests/llmcore/trl_dpo.json. TRL tokenizes the
pairs, pads them, masks prompt and padding, and computes the loss; only the model is ours: a table of logits,
one row of the batch each, so that the gradient with respect to the logits can be read off.

Two runs over the same batch:

- "float32" is TRL from end to end. Its fused LM head takes the log-probabilities in float32 whatever the
  model's dtype, so this run is good to about 1e-6. The table stands in for the backbone's last hidden state
  and the LM head is the identity matrix: hidden states are logits.
- "float64" replaces the fused head by `torch.log_softmax` and `gather` in float64 and keeps the rest:
  `DPOTrainer.compute_loss` sums, subtracts the reference and takes the loss in float64, good to about 1e-15.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
import trl
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.utils import FusedCausalLMOutput

SEED = 20250601
BETAS = (0.1, 0.5)
WORDS = ["<eos>", "<pad>", "a", "b", "c", "d", "e", "f", "g"]
PAIRS = [
    {"prompt": "a b", "chosen": " c d e", "rejected": " f"},
    {"prompt": "g", "chosen": " a", "rejected": " b c d a"},
    {"prompt": "c c d", "chosen": " e f", "rejected": " a g g"},
]
RECORD = Path(__file__).with_name("trl_dpo.json")


class LogitTable(PreTrainedModel, GenerationMixin):
    r"""A causal language model that reads no tokens: its logits are a parameter (rows, tokens, words)."""

    config_class = PreTrainedConfig
    base_model_prefix = "model"

    def __init__(self, logits: Tensor):
        super().__init__(PreTrainedConfig())
        self.model = Backbone(logits)
        self.lm_head = nn.Linear(len(WORDS), len(WORDS), bias=False, dtype=logits.dtype)
        self.lm_head.weight = nn.Parameter(torch.eye(len(WORDS), dtype=logits.dtype), requires_grad=False)

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: object) -> CausalLMOutput:
        return CausalLMOutput(logits=self.lm_head(self.model(input_ids).last_hidden_state))


class Backbone(nn.Module):
    r"""Its last hidden state is the table."""

    def __init__(self, logits: Tensor):
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: object
    ) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=self.logits[:, : input_ids.size(1)])


class ExactHead(nn.Module):
    r"""What TRL's fused head returns, taken in the dtype of the logits."""

    def __init__(self, logits: Tensor):
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, labels: Tensor, **_: object) -> FusedCausalLMOutput:
        logits, targets = self.logits[:, :-1], labels[:, 1:]
        scored = targets != -100
        logps = torch.log_softmax(logits, -1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]
        flat = torch.zeros_like(logps)  # the trainer's other metrics, which nobody reads here
        return FusedCausalLMOutput(
            log_probs=logps.masked_fill(~scored, 0.0),
            entropy=flat,
            mean_logits=flat,
            is_top1=torch.zeros_like(scored),
        )


def make_trainer(policy: LogitTable, reference: LogitTable, beta: float, folder: str) -> DPOTrainer:
    r"""The real trainer on CPU, with the pairs tokenized by its own code."""
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<pad>")
    args = DPOConfig(
        folder,
        loss_type=["sigmoid"],
        beta=beta,
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=len(PAIRS),
        report_to=[],
        seed=SEED,
    )
    return DPOTrainer(
        policy, reference, args, train_dataset=Dataset.from_list(PAIRS), processing_class=tokenizer
    )


def measure(
    trainer: DPOTrainer, policy: nn.Module, reference: nn.Module, logits: Tensor, inputs: dict
) -> dict:
    r"""One call of the trainer's loss, and what it saw on the way."""
    trainer.ref_model = reference
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        return lambda _module, _inputs, output: seen.update({name: output.log_probs.detach()})

    policy.register_forward_hook(keep("policy"))
    reference.register_forward_hook(keep("reference"))
    trainer._metrics["train"].clear()
    loss = trainer.compute_loss(policy, inputs)
    assert isinstance(loss, Tensor)
    (grad,) = torch.autograd.grad(loss, [logits])
    metrics = trainer._metrics["train"]
    return {
        "loss": loss.item(),
        "policy_per_token_logps": seen["policy"].tolist(),
        "policy_logps": seen["policy"].sum(1).tolist(),
        "reference_logps": seen["reference"].sum(1).tolist(),
        "grad_policy_logits": grad.tolist(),
        "mean_chosen_reward": metrics["rewards/chosen"][0],
        "mean_rejected_reward": metrics["rewards/rejected"][0],
        "accuracy": metrics["rewards/accuracies"][0],
        "margin": metrics["rewards/margins"][0],
    }


def main() -> None:
    r"""Run both and write the record."""
    generator = torch.Generator().manual_seed(SEED)
    longest = 7
    shape = (2 * len(PAIRS), longest, len(WORDS))
    # sixteenths: the same numbers in float32, float64 and JSON
    policy, reference = ((torch.randn(shape, generator=generator) * 32).round() / 16 for _ in range(2))
    runs, inputs = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for beta in BETAS:
            tables = LogitTable(policy.clone()), LogitTable(reference.clone())
            trainer = make_trainer(*tables, beta, folder)
            inputs = trainer.data_collator([trainer.train_dataset[i] for i in range(len(PAIRS))])
            assert inputs["input_ids"].shape == shape[:2], inputs["input_ids"].shape
            single = measure(trainer, *tables, tables[0].model.logits, inputs)
            heads = ExactHead(policy.double()), ExactHead(reference.double())
            double = measure(trainer, *heads, heads[0].logits, inputs)
            runs.append({"beta": beta, "float32": single, "float64": double})
    record = {
        "what": "trl.DPOTrainer, loss_type='sigmoid'; rows: chosen answers of all pairs, then rejected ones",
        "by": "tests/llmcore/record_trl.py",
        "trl": trl.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "seed": SEED,
        "input_ids": inputs["input_ids"].tolist(),
        "completion_mask": inputs["completion_mask"].tolist(),
        "policy_logits": policy.tolist(),
        "reference_logits": reference.tolist(),
        "runs": runs,
    }
    text = json.dumps(record, separators=(",", ":")).replace(',"', ',\n"').replace("]],[[", "]],\n[[")
    RECORD.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
