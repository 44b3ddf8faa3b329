#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/option.hpp"
#include "runtime/methods/method.hpp"

namespace cudp {

/// A row of the table of methods (registry.hpp), which makes a method known. Everything but the
/// name and `make` has a usable default.
struct MethodEntry {
  std::string name;
  std::string option_group = "Methods";  ///< heading of its options in --help and config.toml
  std::vector<Option> options;           ///< options that the method owns, or is the first to use
  std::vector<std::string> uses;         ///< options that it shares with other methods
  /// Options without effect that its resolved config may nevertheless set.
  std::vector<std::string> ignores;
  bool stochastic = true;  ///< presets of data sets apply; they are tuned for stochastic gradients
  bool linear_model = false;  ///< trains only a linear model with one score
  /// The method's proof treats a noisy number of examples as one more release, whose noise is fixed
  /// ahead. Otherwise the number has a part of the budget of its own (privacy/count_split.hpp).
  bool counts_in_its_proof = false;
  bool gives_privacy = true;  ///< if false, a run needs no budget, and releases nothing
  bool cpu_only = false;
  /// Making the method takes less than a second, and its noise multiplier follows from the settings
  /// and the number of examples: it can be computed while published data are read.
  bool plans_ahead = false;
  bool on_ranks = true;  ///< trains on several ranks, each with a range of the examples
  /// Transforms gradients coordinate by coordinate before clipping.
  bool transforms_gradients = false;
  /// Reason why units of several examples are refused; empty: they are supported.
  std::string_view units_unsupported;
  bool adapts_step_size = false;  ///< supports --schedule adaptive, from released gradients
  /// Advice if settings tuned for dpsgd are unsuitable: why, and what to type. Empty: they are
  /// suitable.
  std::string_view own_tuning;
  /// Options; if the user sets one of them, own_tuning is not shown.
  std::vector<std::string> tuned_by;
  /// Sets defaults, before any source of settings is applied.
  void (*defaults)(TrainConfig&) = nullptr;
  /// Derives settings from others, after all sources are applied. Throws InputError if they are
  /// inconsistent.
  void (*complete)(TrainConfig&) = nullptr;
  /// Adapts the config to the model and the format of the data; reads nothing private. Throws
  /// InputError.
  void (*fit)(TrainConfig&, const Network&, const Dataset& format) = nullptr;
  std::unique_ptr<Method> (*make)(const MethodContext&) = nullptr;
};

/// Makes a method, for MethodEntry::make.
template <class M>
std::unique_ptr<Method> make_method(const MethodContext& context) {
  return std::make_unique<M>(context);
}

}  // namespace cudp
