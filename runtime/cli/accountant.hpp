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

/// The flags that `cudp account` and `cudp calibrate` have in common.
struct AccountantFlags {
  std::optional<double> epsilon, delta, q, sigma;
  std::optional<std::uint64_t> steps, n, batch;
  /// Numbers of training examples and epochs. They may be given instead of q and steps, which
  /// fill_in_training() then computes from them as `cudp train` does.
  std::optional<std::uint64_t> examples, epochs;
  std::optional<std::uint64_t> steps_per_epoch;  ///< random allocation only
  std::optional<std::uint64_t> uses;  ///< random allocation: steps of an epoch that use an example
  std::string accountant = "pld";
  std::string sampling = "poisson";
  privacy::NeighbouringRelation neighbours = privacy::NeighbouringRelation::add_or_remove;
  std::uint64_t group = 1;
  std::optional<double> interval;
  std::vector<std::string> orders;  ///< numbers, or "adaptive"; empty: default_orders()
  /// List of releases, set only by calls from Python, in place of the flags that describe a single
  /// release.
  std::vector<privacy::Release> releases;
};

/// Returns the options of `cudp account`.
std::vector<Option> account_options();
/// Returns the options of `cudp calibrate`.
std::vector<Option> calibrate_options();
/// Returns the output of `cudp account` for these values of its options. Prints nothing. Throws
/// InputError, BudgetError.
Answer account_answer(const TrainConfig& config);
/// Returns the output of `cudp calibrate` for these values of its options. Prints nothing. Throws
/// InputError, BudgetError.
Answer calibrate_answer(const TrainConfig& config);

/// Returns the options of AccountantFlags. with_estimate: whether --accountant also accepts gdp, an
/// estimate that is not a bound.
std::vector<Option> accountant_rows(bool with_estimate);

/// Returns the relation's name in --neighbours, e.g. "add-or-remove".
std::string name_of(privacy::NeighbouringRelation relation);

/// Returns the value of a flag that is required together with the other given flags. Throws
/// InputError if it is missing.
template <class T>
const T& needed(const std::optional<T>& value, const char* flag) {
  if (!value) throw InputError(std::string(flag) + ": expected a value, found none");
  return *value;
}

/// Throws InputError if one of these flags was given although it has no effect together with the
/// flag `with`. more: further flags, each followed by its value.
template <class T, class... More>
void unused(const std::string& with, const char* flag, const std::optional<T>& value,
            const More&... more) {
  if (value)
    throw InputError(std::string(flag) + ": expected no value with " + with + ", found one");
  if constexpr (sizeof...(more) > 0) unused(with, more...);
}

/// Computes --q and --steps from --examples, --batch and --epochs if these are given, as `cudp
/// train` does for that number of examples. With --sampling fixed, computes --n and --steps. With
/// --sampling allocation, computes --steps-per-epoch. unknown: flag whose value the command
/// computes (as `cudp calibrate` does); "" if none. Throws InputError if the flags contradict each
/// other.
void fill_in_training(AccountantFlags& flags, const std::string& unknown = "");

/// Throws InputError, with all missing flags, if two or more are missing, or if the number of steps
/// is, which can be given in two ways. Does nothing if another single flag is missing.
void refuse_missing(const std::string& command, const std::vector<std::string>& missing);

/// Returns whether the flags describe random allocation, where one release is a whole epoch.
inline bool allocates(const AccountantFlags& flags) { return flags.sampling == "allocation"; }

/// Returns the number of steps of an epoch that use an example.
inline std::uint64_t uses_of(const AccountantFlags& flags) { return flags.uses.value_or(1); }

/// Returns the number of releases: --epochs of random allocation, --steps of others.
inline std::uint64_t release_count(const AccountantFlags& flags) {
  return allocates(flags) ? needed(flags.epochs, "--epochs") : needed(flags.steps, "--steps");
}

/// Returns the missing flags among those that describe a release and the number of steps. unknown:
/// flag whose value the command computes, so that it is not missing; "" if none.
std::vector<std::string> missing_release_flags(const AccountantFlags& flags,
                                               const std::string& unknown = "");

/// Returns the release that the flags describe: --q and --sigma, --n, --batch and --sigma, or
/// --steps-per-epoch and --sigma. unknown: flag whose value the command computes, so that it is not
/// required; its value in the result is arbitrary. "" if none.
privacy::Mechanism mechanism_of(const AccountantFlags& flags, const std::string& unknown = "");

/// Returns the releases that the flags describe: release_count() times the one of mechanism_of();
/// or, if --uses of random allocation is given, releases whose privacy cost is an upper bound.
std::vector<privacy::Release> described_releases(const AccountantFlags& flags);

/// Returns the Renyi orders that --orders lists; empty if the accountant should use the best of all
/// orders.
std::vector<double> orders_of(const AccountantFlags& flags);

/// Returns the composition of these releases, with the neighbouring relation of the flags.
privacy::Composition composition_of(const AccountantFlags& flags,
                                    std::vector<privacy::Release> releases);

/// Returns the accountant's options that the flags state. Requires that --accountant is not gdp,
/// which gives no bound.
privacy::AccountantOptions bound_options(const AccountantFlags& flags);

/// Reads a JSON list of releases: {"q": ..., "sigma": ..., "steps": ...}, or {"mechanism": NAME,
/// its fields, "steps": ...}. Throws InputError, "FILE, POSITION: expected ..., found ...".
std::vector<privacy::Release> read_phases(const std::filesystem::path& file);

/// Reads a list of releases from a JSON text, as from a file. source: name of the list in messages.
std::vector<privacy::Release> read_phases(const std::string& json, const std::string& source);

/// Returns a release in the form that read_phases reads.
nlohmann::ordered_json json_of(const privacy::Release& release);

/// Calls `body`. Converts exceptions of privacy/ to errors for the user: InputError for an argument
/// out of range, BudgetError for an unreachable budget. Returns exit code 0.
int for_user(const std::function<void()>& body);

/// Returns the Answer of `answer` for the values of the command's flags. Converts exceptions of
/// privacy/ to errors for the user as for_user() does.
template <class Flags>
Answer answered(const TrainConfig& config, Answer (*answer)(Flags, Busy&), Busy& busy) {
  Answer found;
  for_user([&] { found = answer(flags_of<Flags, AccountantFlags>(config), busy); });
  return found;
}

/// Returns a function for Command::run that computes an Answer with an accountant and prints it.
/// name: name of the command.
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
