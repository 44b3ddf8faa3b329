#include "runtime/cli/accountant.hpp"

#include <charconv>
#include <stdexcept>

#include <CLI/CLI.hpp>

namespace cudp {
namespace {

/// CLI11 2.1 reads -1 as 2^64 - 1.
std::string whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc() && read.ptr == end) return "";
  return "expected a whole number >= 0, found '" + text + "'";
}

}  // namespace

void add_accountant_options(CLI::App& command, AccountantOptions& options) {
  command.add_option("--epsilon", options.epsilon, "Privacy budget epsilon, in nats");
  command.add_option("--delta", options.delta, "Privacy budget delta, in (0, 1)");
  command.add_option("--q", options.q,
                     "Sampling rate: the probability of each example to be in a step's batch");
  command.add_option("--sigma", options.sigma,
                     "Noise multiplier: noise standard deviation / clipping norm");
  command.add_option("--steps", options.steps, "Number of steps")->check(whole_number);
  command.add_option("--accountant", options.accountant, "rdp: Renyi differential privacy")
      ->capture_default_str();
  command
      .add_option("--orders", options.orders,
                  "Renyi orders > 1, separated by commas (default: 1.1 to 10.9 in tenths, 11 to "
                  "63, 128, 256, 512, 1024)")
      ->delimiter(',');
  command.add_flag("--json", options.json, "Print JSON, with all digits");
}

void check_accountant(const AccountantOptions& options) {
  if (options.accountant != "rdp")
    throw InputError("--accountant: expected rdp, the one available, found '" + options.accountant +
                     "'");
}

int for_user(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::domain_error& unreachable) {
    throw BudgetError(unreachable.what());
  } catch (const std::invalid_argument& refused) {
    throw InputError(refused.what());
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace cudp
