#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/accountant.hpp"
#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/config/option.hpp"

namespace cudp {

/// The flags that `cudp account` (computes epsilon) and `cudp calibrate` (computes the noise) have
/// in common.
struct AccountantFlags {
  std::optional<double> epsilon, delta, q, sigma;
  std::optional<std::uint64_t> steps, n, batch;
  /// Numbers of training examples and of epochs. A user can give these instead of q (the sampling
  /// rate) and steps; fill_in_training() then computes q and steps from them and the batch size, as
  /// `cudp train` does.
  std::optional<std::uint64_t> examples, epochs;
  std::optional<std::uint64_t> steps_per_epoch;  ///< random allocation only
  std::optional<std::uint64_t> uses;  ///< random allocation: steps of an epoch that use an example
  std::string accountant = "pld";
  std::string sampling = "poisson";
  privacy::NeighbouringRelation neighbours = privacy::NeighbouringRelation::add_or_remove;
  std::uint64_t group = 1;
  std::optional<double> interval;
  std::vector<std::string> orders;  ///< numbers, or "adaptive"; empty: default_orders()
  /// List of releases (noisy values, each with its privacy mechanism and number of repetitions),
  /// used instead of the flags that describe a single release. Only calls from Python set it.
  std::vector<privacy::Release> releases;
};

/// Returns the options of `cudp account`, which computes epsilon for a given noise.
std::vector<Option> account_options();
/// Returns the options of `cudp calibrate`, which computes the noise for a given epsilon and delta.
std::vector<Option> calibrate_options();
/// Returns the output of `cudp account`, which computes the epsilon of a training, or of other
/// noisy releases, that its options describe. config: values of the options. Prints nothing. Throws
/// InputError if options are missing or not valid, BudgetError if there is no finite bound.
Answer account_answer(const TrainConfig& config);
/// Returns the output of `cudp calibrate`, which computes the noise (or another option) for a given
/// epsilon and delta. config: values of the options. Prints nothing. Throws InputError if options
/// are missing or not valid, BudgetError if the budget cannot be reached.
Answer calibrate_answer(const TrainConfig& config);

/// Returns the options that `cudp account` and `cudp calibrate` have in common. with_estimate:
/// whether --accountant also accepts gdp, an estimate of epsilon that is not a bound.
std::vector<Option> accountant_rows(bool with_estimate);

/// Returns the name of a neighbouring relation as a user types it after --neighbours, e.g.
/// "add-or-remove".
std::string name_of(privacy::NeighbouringRelation relation);

/// Returns the value of a flag. Throws InputError if the user has not given the flag. flag: the
/// flag's name, for the message.
template <class T>
const T& needed(const std::optional<T>& value, const char* flag) {
  if (!value) throw InputError(std::string(flag) + ": expected a value, found none");
  return *value;
}

/// Throws InputError if a flag is given that has no effect together with the flag `with`. Checks
/// the flag named `flag`, whose value is `value`, and those in `more`, pairs of a flag's name and
/// its value.
template <class T, class... More>
void unused(const std::string& with, const char* flag, const std::optional<T>& value,
            const More&... more) {
  if (value)
    throw InputError(std::string(flag) + ": expected no value with " + with + ", found one");
  if constexpr (sizeof...(more) > 0) unused(with, more...);
}

/// Computes --q and --steps from --examples, --batch and --epochs if these are given, as `cudp
/// train` does for that number of examples. With --sampling fixed, computes --n instead of --q;
/// with --sampling allocation, only --steps-per-epoch. unknown: flag whose value the command will
/// compute later (as `cudp calibrate` does); "" if none. Throws InputError if the flags contradict
/// each other.
void fill_in_training(AccountantFlags& flags, const std::string& unknown = "");

/// Throws InputError, with a list of the flags in `missing`, if there are two or more. Also throws
/// InputError if only the number of steps is missing; the message names the two ways to give it.
/// Does nothing if a single other flag is missing, because the error is then thrown where its value
/// is used. command: name of the command.
void refuse_missing(const std::string& command, const std::vector<std::string>& missing);

/// Returns whether the flags describe random allocation (--sampling allocation), where each example
/// is used in a fixed number of random steps of an epoch, and the accountant counts a whole epoch
/// as one release.
inline bool allocates(const AccountantFlags& flags) { return flags.sampling == "allocation"; }

/// Returns the number of steps of an epoch in which each example is used, under random allocation.
inline std::uint64_t uses_of(const AccountantFlags& flags) { return flags.uses.value_or(1); }

/// Returns the number of noisy sums that the accountant counts: the value of --epochs for random
/// allocation, where it counts a whole epoch as one, otherwise the value of --steps.
inline std::uint64_t release_count(const AccountantFlags& flags) {
  return allocates(flags) ? needed(flags.epochs, "--epochs") : needed(flags.steps, "--steps");
}

/// Returns the names of the flags that are missing to describe the noisy sum of a step (its
/// sampling and noise) and the number of steps. unknown: flag whose value the command will compute,
/// so that it does not count as missing; "" if none.
std::vector<std::string> missing_release_flags(const AccountantFlags& flags,
                                               const std::string& unknown = "");

/// Returns the privacy mechanism of one step that the flags describe: by --q and --sigma for
/// Poisson sampling, by --n, --batch and --sigma for batches of fixed size, or by --steps-per-epoch
/// and --sigma for random allocation. unknown: flag whose value the command will compute, so that
/// it is not required and has an arbitrary value in the result; "" if none.
privacy::Mechanism mechanism_of(const AccountantFlags& flags, const std::string& unknown = "");

/// Returns the releases that the flags describe, as mechanisms with their numbers of repetitions:
/// the mechanism of one step, repeated for all steps. With random allocation and --uses, returns
/// other releases instead, which cost at least as much privacy (privacy::pld::allocated_uses()).
std::vector<privacy::Release> described_releases(const AccountantFlags& flags);

/// Returns the orders of Renyi divergence that --orders lists; empty if the accountant should
/// search for the best order.
std::vector<double> orders_of(const AccountantFlags& flags);

/// Returns the input of an accountant: `releases`, with the neighbouring relation of --neighbours
/// and the group size of --group.
privacy::Composition composition_of(const AccountantFlags& flags,
                                    std::vector<privacy::Release> releases);

/// Returns the options of the privacy accountant that the flags state. Requires that --accountant
/// is not gdp, which gives no bound.
privacy::AccountantOptions bound_options(const AccountantFlags& flags);

/// Reads a file with a JSON list of releases, i.e. privacy mechanisms with their numbers of
/// repetitions ("steps"), each in the form {"q": ..., "sigma": ..., "steps": ...}, or {"mechanism":
/// NAME, the mechanism's parameters, "steps": ...}. Throws InputError, with the position in the
/// file, if it has another form.
std::vector<privacy::Release> read_phases(const std::filesystem::path& file);

/// Reads a list of releases, i.e. privacy mechanisms with their numbers of repetitions ("steps"),
/// from a JSON text of the form [{"q": ..., "sigma": ..., "steps": ...}, ...]. source: name of the
/// text in messages. Throws InputError if it has another form.
std::vector<privacy::Release> read_phases(const std::string& json, const std::string& source);

/// Returns a release (a privacy mechanism and its number of repetitions) as a JSON object, in the
/// form in which read_phases() reads it.
nlohmann::ordered_json json_of(const privacy::Release& release);

/// Calls `body`. Converts exceptions that the functions in privacy/ throw to errors for the user:
/// InputError for an argument out of range, BudgetError for an unreachable budget. Returns exit
/// code 0.
int for_user(const std::function<void()>& body);

/// Returns the output of a command: the result of `answer` for the values of the command's flags in
/// `config`. Converts exceptions of privacy/ to errors for the user, as for_user() does. busy:
/// receives the progress.
template <class Flags>
Answer answered(const TrainConfig& config, Answer (*answer)(Flags, Busy&), Busy& busy) {
  Answer found;
  for_user([&] { found = answer(flags_of<Flags, AccountantFlags>(config), busy); });
  return found;
}

/// Returns the function that executes a command (Command::run): it calls `answer` with the values
/// of the command's flags, shows progress meanwhile, and prints the result. name: name of the
/// command.
template <class Flags>
std::function<int(const TrainConfig&)> printed(const char* name, Answer (*answer)(Flags, Busy&)) {
  return [name, answer](const TrainConfig& c) {
    return for_user([&] {
      std::optional<Busy> busy(std::in_place, std::string("cudp ") + name,
                               c.json ? Busy::Shown::never : Busy::Shown::always);
      const Answer found = answer(flags_of<Flags, AccountantFlags>(c), *busy);
      busy.reset();
      print(found, c.json);
    });
  };
}

}  // namespace cudp
