#include "runtime/cli/accountant.hpp"

#include <charconv>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include "privacy/rdp/default_orders.hpp"

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

void add_accountant_flags(CLI::App& command, AccountantFlags& flags) {
  command.add_option("--epsilon", flags.epsilon, "Privacy budget epsilon, in nats");
  command.add_option("--delta", flags.delta, "Privacy budget delta, in (0, 1)");
  command.add_option("--q", flags.q,
                     "Sampling rate: the probability of each example to be in a step's batch");
  command.add_option("--sigma", flags.sigma,
                     "Noise multiplier: noise standard deviation / clipping norm");
  command.add_option("--steps", flags.steps, "Number of steps")->check(whole_number);
  command
      .add_option("--sampling", flags.sampling,
                  "poisson: each example independently with probability q; fixed: --batch of --n "
                  "examples without replacement")
      ->capture_default_str();
  command.add_option("--n", flags.n, "fixed: number of examples, in the smaller data set")
      ->check(whole_number);
  command.add_option("--batch", flags.batch, "fixed: size of every batch")->check(whole_number);
  command
      .add_option("--accountant", flags.accountant,
                  "pld: privacy loss distributions, or any other valid bound where that is lower; "
                  "rdp: Renyi divergences; advanced: advanced composition")
      ->capture_default_str();
  command
      .add_option("--neighbours", flags.neighbours,
                  "add-or-remove, add, remove or replace-one example")
      ->capture_default_str();
  command.add_option("--group", flags.group, "How many examples neighbours differ by")
      ->check(whole_number)
      ->capture_default_str();
  command.add_option("--interval", flags.interval,
                     "pld: grid of the losses; chosen by what it adds to epsilon if not given");
  command
      .add_option(
          "--orders", flags.orders,
          "Renyi orders > 1, separated by commas, or adaptive: the best of all (default for rdp: "
          "1.1 to 10.9 in tenths, 11 to 63, 128, 256, 512, 1024)")
      ->delimiter(',');
  command.add_flag("--json", flags.json, "Print JSON, with all digits");
}

privacy::Mechanism mechanism_of(const AccountantFlags& o, const std::string& unknown) {
  const double sigma = unknown == "sigma" ? 1.0 : needed(o.sigma, "--sigma");
  if (o.sampling == "poisson") {
    unused(o.n, "--n", "--sampling poisson");
    unused(o.batch, "--batch", "--sampling poisson");
    return privacy::PoissonGaussian{.q = unknown == "q" ? 0.0 : needed(o.q, "--q"), .sigma = sigma};
  }
  if (o.sampling != "fixed")
    throw InputError("--sampling: expected poisson or fixed, found '" + o.sampling + "'");
  unused(o.q, "--q", "--sampling fixed");
  return privacy::FixedSizeGaussian{.n = needed(o.n, "--n"),
                                    .batch = unknown == "batch" ? 1 : needed(o.batch, "--batch"),
                                    .sigma = sigma};
}

privacy::NeighbouringRelation relation_of(const AccountantFlags& o) {
  if (o.neighbours == "add") return privacy::NeighbouringRelation::add;
  if (o.neighbours == "remove") return privacy::NeighbouringRelation::remove;
  if (o.neighbours == "add-or-remove") return privacy::NeighbouringRelation::add_or_remove;
  if (o.neighbours == "replace-one") return privacy::NeighbouringRelation::replace_one;
  throw InputError("--neighbours: expected add-or-remove, add, remove or replace-one, found '" +
                   o.neighbours + "'");
}

std::vector<double> orders_of(const AccountantFlags& o) {
  if (o.orders.empty() && o.accountant == "rdp") {
    const std::span<const double> usual = privacy::default_orders();
    return {usual.begin(), usual.end()};
  }
  std::vector<double> orders;
  for (const std::string& text : o.orders) {
    if (text == "adaptive" && o.orders.size() == 1) return {};
    double value = 0.0;
    const char* end = text.data() + text.size();
    const std::from_chars_result read = std::from_chars(text.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end)
      throw InputError("--orders: expected numbers separated by commas, or adaptive, found '" +
                       text + "'");
    orders.push_back(value);
  }
  return orders;
}

privacy::Composition composition_of(const AccountantFlags& o,
                                    std::vector<privacy::Release> releases) {
  return {.releases = std::move(releases), .relation = relation_of(o), .group = o.group};
}

privacy::AccountantOptions accountant_options(const AccountantFlags& o) {
  privacy::AccountantOptions options;
  if (o.accountant == "rdp")
    options.kind = privacy::AccountantKind::rdp;
  else if (o.accountant == "advanced")
    options.kind = privacy::AccountantKind::advanced;
  else if (o.accountant != "pld")
    throw InputError("--accountant: expected pld, rdp, advanced or gdp, found '" + o.accountant +
                     "'");
  options.interval = o.interval.value_or(0.0);
  if (o.interval && !(*o.interval > 0.0))
    throw InputError("--interval: expected a number > 0, found " + std::to_string(*o.interval));
  options.orders = orders_of(o);
  return options;
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
