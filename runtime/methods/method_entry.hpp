#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/option.hpp"
#include "runtime/methods/method.hpp"

namespace cudp {

/// One row of the table of methods (registry.hpp): what makes a method known. Everything but the
/// name and `make` may stay as it is.
struct MethodEntry {
  std::string name;
  std::string option_group = "Methods";  ///< heading of its options, in --help and config.toml
  std::vector<Option> options;           ///< its own, or which it is the first to have
  std::vector<std::string> uses;         ///< options that it shares with other methods
  std::vector<std::string> ignores;      ///< which a resolved config may set all the same
  bool stochastic = true;     ///< presets of data sets, tuned for stochastic gradients, apply
  bool linear_model = false;  ///< trains a linear model with one score only
  /// Its proof takes a noisy number of examples as one release more, whose noise was fixed before;
  /// otherwise the number has a part of the budget for itself (privacy/count_split.hpp).
  bool counts_in_its_proof = false;
  bool gives_privacy = true;  ///< otherwise a run needs no budget, and releases nothing
  bool cpu_only = false;
  bool on_ranks = true;  ///< trains on several ranks, each with a range of the examples
  bool transforms_gradients = false;  ///< clips them coordinate by coordinate
  std::string_view no_units;          ///< why it takes no units of several examples; empty: it does
  bool adapts_step_size = false;      ///< --schedule adaptive: by what it released
  /// For a method that settings tuned for dpsgd do not serve: why not, and what to type. Empty:
  /// they serve it.
  std::string_view own_tuning;
  std::vector<std::string> tuned_by;  ///< options of which one that is typed shows that it is known
  /// Before any source of settings is applied.
  void (*defaults)(TrainConfig&) = nullptr;
  /// Once all are: fills in what follows from others. Throws InputError where they do not fit.
  void (*complete)(TrainConfig&) = nullptr;
  /// Fits the config to the model and the format of the data, of which nothing private is read.
  /// Throws InputError.
  void (*fit)(TrainConfig&, const Network&, const Dataset& format) = nullptr;
  std::unique_ptr<Method> (*make)(const MethodContext&) = nullptr;
};

/// For MethodEntry::make.
template <class M>
std::unique_ptr<Method> make_method(const MethodContext& context) {
  return std::make_unique<M>(context);
}

}  // namespace cudp
