#include "runtime/cli/accountant.hpp"

#include <charconv>
#include <stdexcept>

#include "privacy/rdp/default_orders.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/config/option_rows.hpp"

namespace cudp {
namespace {

constexpr Choice<privacy::NeighbouringRelation> kNeighbours[] = {
    {"add-or-remove", privacy::NeighbouringRelation::add_or_remove},
    {"add", privacy::NeighbouringRelation::add},
    {"remove", privacy::NeighbouringRelation::remove},
    {"replace-one", privacy::NeighbouringRelation::replace_one}};

}  // namespace

std::vector<Option> accountant_rows(bool with_estimate) {
  using namespace option_rows;
  using Flags = AccountantFlags;
  std::vector<std::string> accountants = {"pld", "rdp", "advanced"};
  if (with_estimate) accountants.emplace_back("gdp");
  const char* const accountant_help =
      with_estimate
          ? "pld: privacy loss distributions, or any other valid bound where that is lower; rdp: "
            "Renyi divergences; advanced: advanced composition; gdp: the central limit theorem's "
            "estimate, not a bound"
          : "pld: privacy loss distributions, or any other valid bound where that is lower; rdp: "
            "Renyi divergences; advanced: advanced composition";
  return {
      number("epsilon", "E", &Flags::epsilon, kFromZero, "Privacy budget epsilon, in nats"),
      number("delta", "D", &Flags::delta, kInsideUnit, "Privacy budget delta, in (0, 1)"),
      number("q", "Q", &Flags::q, kUnit,
             "Sampling rate: the probability of each example to be in a step's batch"),
      number("sigma", "S", &Flags::sigma, kAboveZero,
             "Noise multiplier: noise standard deviation / clipping norm"),
      integer("steps", "N", &Flags::steps, kWhole, "Number of steps"),
      one_of(text("sampling", "NAME", &Flags::sampling,
                  "poisson: each example independently with probability q; fixed: --batch of --n "
                  "examples without replacement"),
             {"poisson", "fixed"}),
      integer("n", "N", &Flags::n, kWhole, "fixed: number of examples, in the smaller data set"),
      integer("batch", "B", &Flags::batch, kWhole, "fixed: size of every batch"),
      one_of(text("accountant", "NAME", &Flags::accountant, accountant_help), accountants),
      choice("neighbours", &Flags::neighbours, kNeighbours,
             "add-or-remove, add, remove or replace-one example"),
      integer("group", "N", &Flags::group, kWhole, "How many examples neighbours differ by"),
      number("interval", "W", &Flags::interval, kAboveZero,
             "pld: grid of the losses; chosen by what it adds to epsilon if not given"),
      list("orders", "A ...", &Flags::orders, {},
           "Renyi orders > 1, separated by commas, or adaptive: the best of all (default for rdp: "
           "1.1 to 10.9 in tenths, 11 to 63, 128, 256, 512, 1024)"),
      json_option("Print JSON, with all digits"),
  };
}

std::string name_of(privacy::NeighbouringRelation relation) {
  return std::string(choice_name<privacy::NeighbouringRelation>(kNeighbours, relation));
}

privacy::Mechanism mechanism_of(const AccountantFlags& o, const std::string& unknown) {
  const double sigma = unknown == "sigma" ? 1.0 : needed(o.sigma, "--sigma");
  if (o.sampling == "poisson") {
    unused(o.n, "--n", "--sampling poisson");
    unused(o.batch, "--batch", "--sampling poisson");
    return privacy::PoissonGaussian{.q = unknown == "q" ? 0.0 : needed(o.q, "--q"), .sigma = sigma};
  }
  unused(o.q, "--q", "--sampling fixed");
  return privacy::FixedSizeGaussian{.n = needed(o.n, "--n"),
                                    .batch = unknown == "batch" ? 1 : needed(o.batch, "--batch"),
                                    .sigma = sigma};
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
  return {.releases = std::move(releases), .relation = o.neighbours, .group = o.group};
}

privacy::AccountantOptions bound_options(const AccountantFlags& o) {
  privacy::AccountantOptions options;
  if (o.accountant == "rdp")
    options.kind = privacy::AccountantKind::rdp;
  else if (o.accountant == "advanced")
    options.kind = privacy::AccountantKind::advanced;
  options.interval = o.interval.value_or(0.0);
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
