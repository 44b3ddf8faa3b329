#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/option.hpp"
#include "runtime/methods/method.hpp"

namespace cudp {

/// A row of the registry of training methods (registry.hpp). Everything but the name and `make` has
/// a usable default.
struct MethodEntry {
  std::string name;
  /// Heading under which --help and config.toml list the method's options.
  std::string option_group = "Methods";
  std::vector<Option> options;  ///< options that belong to this method
  /// Keys of options that the method shares with other methods, such as "clip".
  std::vector<std::string> uses;
  /// Keys of options that a config file for this method may contain although they have no effect on
  /// it.
  std::vector<std::string> ignores;
  /// Whether the method trains with random batches. Presets of data sets, which are tuned for such
  /// methods, then apply to it.
  bool stochastic = true;
  bool linear_model = false;  ///< trains only a linear model with one output
  /// Whether the method's own privacy proof covers the release of the noisy number of examples,
  /// with noise that is fixed in advance. If false, that release has a separate part of the budget
  /// (privacy/count_split.hpp).
  bool counts_in_its_proof = false;
  bool gives_privacy = true;  ///< if false, a run needs no budget, and releases nothing
  bool cpu_only = false;
  /// Whether the method's plan, with its noise multiplier, depends only on the settings and the
  /// number of examples, and is computed in less than a second. If so, it is computed while a data
  /// set of known size is still being read.
  bool plans_ahead = false;
  bool on_ranks = true;  ///< trains on several ranks, each with a range of the examples
  /// Whether gradients are transformed coordinate by coordinate before clipping (AdaCliP).
  bool transforms_gradients = false;
  /// Reason why the method does not support units of privacy that have several examples; empty if
  /// it supports them.
  std::string_view units_unsupported;
  bool adapts_step_size = false;  ///< supports --schedule adaptive, from released gradients
  /// Message for a user who combines this method with settings (e.g. of a preset) that are tuned
  /// for method dpsgd and do not suit this one: the reason, and the flags to use instead. Empty if
  /// settings for dpsgd suit this method.
  std::string_view own_tuning;
  /// Keys of options that tune this method. If the user sets one of them, the message own_tuning is
  /// not shown.
  std::vector<std::string> tuned_by;
  /// Sets the method's default settings. Called before settings are read from files and flags.
  /// Null: the general defaults apply.
  void (*defaults)(TrainConfig&) = nullptr;
  /// Computes settings that follow from others. Called after all settings were read. Throws
  /// InputError if settings contradict each other. Null: nothing to compute.
  void (*complete)(TrainConfig&) = nullptr;
  /// Adapts the config to the network and to the format of the data (columns and types, no private
  /// rows). Throws InputError if the method cannot train this network with these settings. Null:
  /// nothing to adapt.
  void (*fit)(TrainConfig&, const Network&, const Dataset& format) = nullptr;
  std::unique_ptr<Method> (*make)(const MethodContext&) = nullptr;
};

/// Makes a method of class M. A MethodEntry's `make` points to this function.
template <class M>
std::unique_ptr<Method> make_method(const MethodContext& context) {
  return std::make_unique<M>(context);
}

}  // namespace cudp
