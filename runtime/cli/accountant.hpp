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

/// The flags that `account` and `calibrate` share.
struct AccountantFlags {
  std::optional<double> epsilon, delta, q, sigma;
  std::optional<std::uint64_t> steps, n, batch;
  /// Numbers of training examples and epochs. They may be given instead of q and steps, which
  /// fill_in_training() then derives as `cudp train` does.
  std::optional<std::uint64_t> examples, epochs;
  std::string accountant = "pld";
  std::string sampling = "poisson";
  privacy::NeighbouringRelation neighbours = privacy::NeighbouringRelation::add_or_remove;
  std::uint64_t group = 1;
  std::optional<double> interval;
  std::vector<std::string> orders;  ///< numbers, or "adaptive"; empty: default_orders()
};

/// Their rows. with_estimate: --accountant may be gdp too, which bounds nothing.
std::vector<Option> accountant_rows(bool with_estimate);

/// The name that --neighbours has for it: "add-or-remove".
std::string name_of(privacy::NeighbouringRelation relation);

/// The value of a flag that this use of the command needs; throws InputError where it is missing.
template <class T>
const T& needed(const std::optional<T>& value, const char* flag) {
  if (!value) throw InputError(std::string(flag) + ": expected a value, found none");
  return *value;
}

/// Throws InputError if one of these flags was given, which this use of the command would ignore.
/// more: further flags, each followed by its value.
template <class T, class... More>
void unused(const std::string& with, const char* flag, const std::optional<T>& value,
            const More&... more) {
  if (value)
    throw InputError(std::string(flag) + ": expected no value with " + with + ", found one");
  if constexpr (sizeof...(more) > 0) unused(with, more...);
}

/// Works out --q and --steps from --examples, --batch and --epochs, where these are given, as `cudp
/// train` does of so many examples; with --sampling fixed, --n and --steps. `unknown` is what
/// mechanism_of has under that name. Throws InputError where the flags contradict each other.
void fill_in_training(AccountantFlags& flags, const std::string& unknown = "");

/// Throws InputError that names all of these flags, if there are two or more. Of single ones only
/// the number of steps is refused here, as it can be given in two ways.
void refuse_missing(const std::string& command, const std::vector<std::string>& missing);

/// The flags that say which release it is, and are missing; steps among them.
std::vector<std::string> missing_release_flags(const AccountantFlags& flags,
                                               const std::string& unknown = "");

/// One release as the flags say: --q and --sigma, or --n, --batch and --sigma. What `unknown` names
/// is not asked for, and stands in at an arbitrary value.
privacy::Mechanism mechanism_of(const AccountantFlags& flags, const std::string& unknown = "");

/// The orders that --orders names; empty for all orders, of which the best is searched.
std::vector<double> orders_of(const AccountantFlags& flags);

/// These releases, for the flags' neighbours.
privacy::Composition composition_of(const AccountantFlags& flags,
                                    std::vector<privacy::Release> releases);

/// The flags' accountant, which is not gdp.
privacy::AccountantOptions bound_options(const AccountantFlags& flags);

/// A JSON list of releases: {"q": ..., "sigma": ..., "steps": ...}, or {"mechanism": NAME, its
/// fields, "steps": ...}. Throws InputError, "FILE, PLACE: expected ..., found ...".
std::vector<privacy::Release> read_phases(const std::filesystem::path& file);

/// A release as read_phases reads it.
nlohmann::ordered_json json_of(const privacy::Release& release);

/// Runs `body`. What privacy/ refuses becomes the user's error: an argument out of range an
/// InputError, a budget that nothing reaches a BudgetError.
int for_user(const std::function<void()>& body);

/// The work of a command that asks the accountant: prints the answer to the flags' question. name:
/// of the command.
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
