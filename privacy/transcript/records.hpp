#pragma once
#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cudp::transcript {

// Records of a seeded run: what each step drew, summed and released. The gate writes them
// (runtime/gate/transcript.hpp), a checker reads them (privacy/verify/checker.hpp). They hold
// secrets: sums before noise and the examples drawn. Only a run with --seed makes a transcript, and
// no file keeps it.

/// A process began to train: from the first step, or from a checkpoint.
struct Begin {
  std::string generator;  ///< "chacha20" or "philox"
  std::array<std::uint32_t, 8> key{};
  std::uint64_t examples = 0;  ///< rows of the training set
  std::uint64_t step = 0;      ///< steps done before
  bool operator==(const Begin&) const = default;
};

/// The examples that a step drew.
struct Batch {
  std::uint64_t step = 0;
  std::uint64_t threshold = 0;  ///< each with probability threshold / 2^32; 0 for candidates
  std::vector<std::uint32_t> examples;  ///< ascending
  bool operator==(const Batch&) const = default;
};

/// A value that left the private side with noise.
struct Release {
  std::string name;
  std::uint32_t stream = 0;  ///< the generator's stream; with `step`, where its noise is drawn
  std::uint64_t step = 0;
  double grid = 0.0;
  double noise_std = 0.0;
  double sensitivity = 0.0;        ///< as the releaser states it; 0 where the plan does
  std::uint64_t charged = 0;       ///< releases in the ledger's file at that moment
  std::vector<std::int64_t> sums;  ///< before noise, in units of the grid; empty for a choice
  /// Before noise, of what is on no grid: scores that a choice was made among, a minimum.
  std::vector<double> scores;
  std::vector<double> values;  ///< what left: grid (sums + noise), rounded to float by engines
  bool operator==(const Release&) const = default;
};

/// An optimizer's step, and all that it needs besides the release of the same step.
struct Update {
  std::uint64_t step = 0;
  /// sgd, momentum, nesterov, adam, adamw; dp-agd, whose weight_decay is N lambda and whose
  /// learning_rate is the step size that was chosen.
  std::string optimizer;
  double momentum = 0.0, beta1 = 0.0, beta2 = 0.0, epsilon = 0.0, weight_decay = 0.0;
  double learning_rate = 0.0;  ///< as it was used, floats all
  double inverse_batch = 0.0;
  double bias1 = 1.0, bias2 = 1.0, ema_decay = 0.0;
  bool coordinates = false;  ///< of transformed gradients (AdaCliP): the checker does not redo it
  // Afterwards; [parameters] or empty. What was before is the last Update's, or State's.
  std::vector<float> parameters, moment1, moment2, average;
  bool operator==(const Update&) const = default;
};

/// The state that a process started its steps from.
struct State {
  std::vector<float> parameters, moment1, moment2, average;
  bool operator==(const State&) const = default;
};

using Record = std::variant<Begin, State, Batch, Release, Update>;

/// A record as bytes: a line of JSON, "kind" and numbers and the arrays' lengths, then the arrays
/// in the machine's own order.
std::string encode(const Record& record);

/// All records of a transcript, in order. A last record that was cut off is left away, as a process
/// that was killed leaves it. Throws std::invalid_argument, with the byte, on anything else that
/// encode does not write.
std::vector<Record> decode(std::string_view transcript);

}  // namespace cudp::transcript
