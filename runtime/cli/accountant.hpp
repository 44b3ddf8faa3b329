#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "privacy/phase.hpp"
#include "runtime/error.hpp"

namespace CLI {
class App;
}

namespace cudp {

/// The options that `account` and `calibrate` share.
struct AccountantOptions {
  std::optional<double> epsilon, delta, q, sigma;
  std::optional<std::uint64_t> steps;
  std::string accountant = "rdp";
  std::vector<double> orders;  ///< empty: the default ones
  bool json = false;
};

void add_accountant_options(CLI::App& command, AccountantOptions& options);

/// The value of a flag that this use of the command needs; throws InputError where it is missing.
template <class T>
const T& needed(const std::optional<T>& value, const char* flag) {
  if (!value) throw InputError(std::string(flag) + ": expected a value, found none");
  return *value;
}

/// Throws InputError if a flag was given that this use of the command would ignore.
template <class T>
void unused(const std::optional<T>& value, const char* flag, const std::string& with) {
  if (value)
    throw InputError(std::string(flag) + ": expected no value with " + with + ", found one");
}

/// Throws InputError unless the accountant exists.
void check_accountant(const AccountantOptions& options);

/// A JSON list of {"q": ..., "sigma": ..., "steps": ...}.
/// Throws InputError, "FILE, PLACE: expected ..., found ...".
std::vector<privacy::Phase> read_phases(const std::filesystem::path& file);

/// Runs `body`. What privacy/ refuses becomes the user's error: an argument out of range an
/// InputError, a budget that nothing reaches a BudgetError.
int for_user(const std::function<void()>& body);

}  // namespace cudp
