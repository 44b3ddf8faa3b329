#pragma once

namespace cudp {

/// softmax_cross_entropy: logits [classes]. logistic: one logit z, label 0 or 1,
/// log(1 + exp(-y z)) with y = 2 label - 1. hinge: one logit, max(0, 1 - y z).
enum class Loss { softmax_cross_entropy, logistic, hinge };

}  // namespace cudp
