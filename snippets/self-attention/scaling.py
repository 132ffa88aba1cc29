"""What the factor on the scores does to their variance, to the softmax and to the gradient of a query."""

import torch

torch.manual_seed(0)
n_keys, draws = 64, 2000

print("scale, d         var(score)   largest weight    ‖J‖     ‖dq‖   mean ‖dq‖  (the rest: medians)")
for d in (16, 64, 256, 1024):
    query = torch.randn(draws, 1, d)
    key = torch.randn(draws, n_keys, d)
    upstream = torch.randn(draws, n_keys)  # dP, the gradient that arrives at the weights
    dots = (query @ key.transpose(-2, -1)).squeeze(1)  # (draws, keys)
    for name, scale in (("1", 1.0), ("1/√d", d**-0.5), ("1/d", 1 / d)):
        p = (dots * scale).softmax(-1)
        jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
        d_scores = (jacobian @ upstream[:, :, None]).transpose(-2, -1)
        d_query = (d_scores @ key).squeeze(1) * scale
        d_query = d_query.norm(dim=1)
        size = jacobian.flatten(1).norm(dim=1).median()
        typical, mean = d_query.median(), d_query.mean()
        var = float(f"{(dots * scale).var():.3g}")
        largest = p.amax(-1).median()
        row = f"{name}, d = {d}"
        print(f"{row:<14}{var:>13g}{largest:>17.3f}{size:>9.2g}{typical:>9.2g}{mean:>12.2g}")
