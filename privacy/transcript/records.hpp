#pragma once
#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cudp::transcript {

// Records of a seeded run: the examples that each step drew, its sums and its released values. A
// training writes them (runtime/gate/transcript.hpp), a checker reads them
// (privacy/verify/checker.hpp). They contain secrets: sums before noise and the examples drawn.
// Only a run with --seed makes a transcript, and it is never saved to a file.

/// Record of a transcript, the log of everything that a seeded run did, from which a checker
/// verifies the run: a process started to train, from the first step or from a checkpoint.
struct Begin {
  std::string generator;  ///< "chacha20" or "philox"
  std::array<std::uint32_t, 8> key{};
  std::uint64_t examples = 0;  ///< number of rows of the training set
  std::uint64_t step = 0;      ///< number of steps done before this process started
  bool operator==(const Begin&) const = default;
};

/// Record of a transcript, the log from which a checker verifies a run: the examples that a step
/// drew.
struct Batch {
  std::uint64_t step = 0;
  std::uint64_t threshold = 0;          ///< sampling rate, times 2^32; 0 if not Poisson
  std::uint64_t epoch_steps = 0;        ///< steps of an epoch of random allocation; 0 otherwise
  std::vector<std::uint32_t> examples;  ///< indices of the drawn examples, ascending
  bool operator==(const Batch&) const = default;
};

/// Record of a transcript, the log from which a checker verifies a run: values that were released
/// with noise, and the private sums from which they were computed.
struct Release {
  std::string name;
  std::uint32_t stream = 0;  ///< random stream; together with `step` it selects the noise
  std::uint64_t step = 0;
  double grid = 0.0;  ///< sums and noise are integer multiples of this number [unit of the value]
  double noise_std = 0.0;
  /// L2 sensitivity stated by the code that releases; 0: the certificate states it.
  double sensitivity = 0.0;
  std::uint64_t charged = 0;  ///< number of releases in the ledger's file when this one was made
  std::vector<std::int64_t> sums;  ///< exact sums [multiples of `grid`]; empty for a noisy choice
  /// Private inputs of the release, if they are not multiples of `grid`: the scores of a noisy
  /// choice, or the minimum of an objective.
  std::vector<double> scores;
  /// Released values: (sums + noise) times `grid`. Sums of gradients, which an engine computes, are
  /// also rounded to float.
  std::vector<double> values;
  bool operator==(const Release&) const = default;
};

/// Record of a transcript, the log from which a checker verifies a run: an update of the
/// parameters, with all its inputs except the noisy gradient sum, which is in the Release record of
/// the same step.
struct Update {
  std::uint64_t step = 0;
  /// Update rule: one of sgd, momentum, nesterov, adam, adamw, dp-agd. For dp-agd, learning_rate is
  /// the chosen step size, and weight_decay is the factor on the parameters in the regulariser's
  /// gradient: the number of examples times the option l2.
  std::string optimizer;
  double momentum = 0.0, beta1 = 0.0, beta2 = 0.0, epsilon = 0.0, weight_decay = 0.0;
  /// Learning rate of this step. It and the following numbers were rounded to float.
  double learning_rate = 0.0;
  double inverse_batch = 0.0;
  double bias1 = 1.0, bias2 = 1.0, ema_decay = 0.0;
  /// Whether gradients were transformed before clipping (AdaCliP). The checker then skips the
  /// update.
  bool coordinates = false;
  // State after the update, [parameters] or empty. The state before it is in the last Update or
  // State record.
  std::vector<float> parameters, moment1, moment2, average;
  /// Factor on the learning rate of each parameter; empty if all are 1.
  std::vector<float> lr_scale{};
  bool operator==(const Update&) const = default;
};

/// Record of a transcript, the log from which a checker verifies a run: the parameters and the
/// optimizer's state when a process starts, before its first step.
struct State {
  std::vector<float> parameters, moment1, moment2, average;
  bool operator==(const State&) const = default;
};

using Record = std::variant<Begin, State, Batch, Release, Update>;

/// Returns a record of a transcript as bytes: a line of JSON with the record's kind, its scalars
/// and the lengths of its arrays; then the arrays in the machine's byte order.
std::string encode(const Record& record);

/// Returns all records of a transcript (see encode()), in order. A truncated last record, as a
/// killed process leaves it, is skipped. Throws std::invalid_argument, with the byte offset, if
/// anything else is not the result of encode().
std::vector<Record> decode(std::string_view transcript);

}  // namespace cudp::transcript
