#include "runtime/cli/accountant.hpp"

#include <cmath>
#include <stdexcept>

#include "privacy/pld/allocation.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "runtime/base/listed.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/training_size.hpp"

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
  std::string accountant_help =
      "pld: privacy loss distributions, or any other valid bound where that is lower; rdp: Renyi "
      "divergences; advanced: advanced composition";
  if (with_estimate) {
    accountants.emplace_back("gdp");
    accountant_help += "; gdp: the central limit theorem's estimate, not a bound";
  }
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
                  "examples without replacement; allocation: each example in one random step, or "
                  "--uses of them, of each of the --epochs, which have --steps-per-epoch"),
             {"poisson", "fixed", "allocation"}),
      integer("steps-per-epoch", "N", &Flags::steps_per_epoch, kCount,
              "allocation: steps of an epoch; or --examples and --batch"),
      integer("uses", "K", &Flags::uses, kCount,
              "allocation: steps of an epoch that each example is used in; 1 if not given"),
      integer("examples", "N", &Flags::examples, kCount,
              "Number of training examples: with --batch in place of --q (or of --n)"),
      integer("batch", "B", &Flags::batch, kWhole,
              "With --examples: expected size of a batch; fixed: size of every batch"),
      integer("epochs", "N", &Flags::epochs, kCount,
              "With --examples and --batch, in place of --steps: length of the training; "
              "allocation: number of epochs"),
      integer("n", "N", &Flags::n, kWhole, "fixed: number of examples, in the smaller data set"),
      one_of(text("accountant", "NAME", &Flags::accountant, accountant_help.c_str()), accountants),
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

namespace {

/// Throws InputError if the user gave a flag whose value follows from other flags that were given:
/// --q from --examples and --batch, --steps from --epochs, etc. unknown: name, without dashes, of
/// the quantity that the command computes (--solve). Also throws if the given flags determine that
/// quantity: with --solve steps, --epochs is an error.
void check_no_contradiction(const AccountantFlags& o, const std::string& unknown) {
  const bool fixed = o.sampling == "fixed";
  const std::string with = fixed ? "--examples" : "--examples and --batch";
  if (o.examples || (!fixed && o.batch)) unused(with, "--q", o.q);
  if (o.examples && fixed) unused(with, "--n", o.n);
  if (unknown == "q") unused("--solve q", "--examples", o.examples, "--batch", o.batch);
  if (unknown == "q" || unknown == "batch") unused("--solve " + unknown, "--epochs", o.epochs);
  if (!o.epochs) return;
  unused("--epochs", "--steps", o.steps);
  if (unknown == "steps") unused("--solve steps", "--epochs", o.epochs);
  unused("--epochs, which needs --examples and --batch", "--q", o.q);
}

}  // namespace

namespace {

/// Throws InputError if --uses, the number of steps of an epoch that use an example, is larger than
/// the number of steps of an epoch.
void check_uses(const AccountantFlags& o) {
  if (o.uses && o.steps_per_epoch && *o.uses > *o.steps_per_epoch)
    throw InputError("--uses: expected at most the " + std::to_string(*o.steps_per_epoch) +
                     " steps of an epoch, found " + std::to_string(*o.uses));
}

/// Checks the flags that belong to random allocation (--sampling allocation: each example is in a
/// fixed number of random steps of an epoch), and throws InputError if they are not valid. Computes
/// --steps-per-epoch if --examples and --batch are given.
void fill_in_epoch(AccountantFlags& o) {
  const std::string with = "--sampling allocation";
  unused(with, "--q", o.q, "--n", o.n, "--interval", o.interval);
  unused(with + ", whose releases are --epochs", "--steps", o.steps);
  if (o.accountant != "pld")
    throw InputError("--accountant: expected pld with " + with +
                     ", the only one that has a bound for it, found " + o.accountant);
  if (!o.orders.empty()) throw InputError("--orders: expected none with " + with + ", found some");
  if (o.group != 1)
    throw InputError("--group: expected 1 with " + with +
                     ", because no bound is known for groups, found " + std::to_string(o.group));
  if (o.neighbours == privacy::NeighbouringRelation::replace_one)
    throw InputError("--neighbours: expected add-or-remove, add or remove with " + with +
                     ", because no bound is known for replacement, found replace-one");
  if (!o.examples && !o.batch) return check_uses(o);
  unused("--examples and --batch", "--steps-per-epoch", o.steps_per_epoch);
  if (!o.examples || !o.batch)
    throw InputError(
        std::string(o.batch ? "--batch: expected --examples" : "--examples: expected --batch") +
        " with it, found none");
  if (*o.batch < 1 || *o.batch > *o.examples)
    throw InputError("--batch: expected 1 to the " + std::to_string(*o.examples) +
                     " examples, found " + std::to_string(*o.batch));
  const double used = static_cast<double>(*o.examples) * static_cast<double>(uses_of(o));
  o.steps_per_epoch =
      TrainingSize{.value = used}.steps_per_epoch(static_cast<std::int64_t>(*o.batch));
  check_uses(o);
}

}  // namespace

void fill_in_training(AccountantFlags& o, const std::string& unknown) {
  if (allocates(o)) return fill_in_epoch(o);
  unused("--sampling " + o.sampling, "--steps-per-epoch", o.steps_per_epoch, "--uses", o.uses);
  check_no_contradiction(o, unknown);
  const bool fixed = o.sampling == "fixed";
  if (fixed && o.examples) o.n = o.examples;
  const std::optional<std::uint64_t> examples = fixed ? o.n : o.examples;
  if (!o.epochs && (fixed || (!o.examples && !o.batch))) return;
  if (!examples || !o.batch) {
    const std::string found = examples ? "--examples" : o.batch ? "--batch" : "--epochs";
    throw InputError(found + ": expected " +
                     (examples  ? "--batch"
                      : o.batch ? "--examples"
                                : "--examples and --batch") +
                     " with it, found none");
  }
  if (*o.batch < 1 || *o.batch > *examples)
    throw InputError("--batch: expected 1 to the " + std::to_string(*examples) +
                     " examples, found " + std::to_string(*o.batch));
  const auto n = static_cast<double>(*examples);
  if (!fixed)
    o.q = static_cast<double>(poisson_threshold(static_cast<double>(*o.batch), n)) * 0x1p-32;
  if (o.epochs)
    o.steps =
        *o.epochs * TrainingSize{.value = n}.steps_per_epoch(static_cast<std::int64_t>(*o.batch));
}

void refuse_missing(const std::string& command, const std::vector<std::string>& missing) {
  if (missing.size() == 1 && missing.front().starts_with("--steps ("))
    throw InputError(command +
                     ": expected --epochs with --examples and --batch, or --steps, found neither");
  if (missing.size() < 2) return;
  throw InputError(command + ": expected " + listed(missing) + ", found none of them");
}

std::vector<std::string> missing_release_flags(const AccountantFlags& o,
                                               const std::string& unknown) {
  std::vector<std::string> missing;
  if (allocates(o)) {
    if (!o.steps_per_epoch) missing.emplace_back("--steps-per-epoch (or --examples and --batch)");
    if (!o.sigma && unknown != "sigma") missing.emplace_back("--sigma");
    if (!o.epochs && unknown != "epochs") missing.emplace_back("--epochs");
    return missing;
  }
  if (o.sampling == "poisson") {
    if (!o.q && unknown != "q") missing.emplace_back("--q (or --examples and --batch)");
  } else {
    if (!o.n) missing.emplace_back("--n");
    if (!o.batch && unknown != "batch") missing.emplace_back("--batch");
  }
  if (!o.sigma && unknown != "sigma") missing.emplace_back("--sigma");
  if (!o.steps && unknown != "steps") missing.emplace_back("--steps (or --epochs)");
  return missing;
}

privacy::Mechanism mechanism_of(const AccountantFlags& o, const std::string& unknown) {
  const double sigma = unknown == "sigma" ? 1.0 : needed(o.sigma, "--sigma");
  if (allocates(o))
    return privacy::AllocatedGaussian{.steps = needed(o.steps_per_epoch, "--steps-per-epoch"),
                                      .sigma = sigma};
  if (o.sampling == "poisson") {
    unused("--sampling poisson", "--n", o.n);
    return privacy::PoissonGaussian{.q = unknown == "q" ? 0.0 : needed(o.q, "--q"), .sigma = sigma};
  }
  unused("--sampling fixed", "--q", o.q);
  return privacy::FixedSizeGaussian{.n = needed(o.n, "--n"),
                                    .batch = unknown == "batch" ? 1 : needed(o.batch, "--batch"),
                                    .sigma = sigma};
}

std::vector<privacy::Release> described_releases(const AccountantFlags& o) {
  if (allocates(o) && uses_of(o) > 1)
    return privacy::pld::allocated_uses(needed(o.steps_per_epoch, "--steps-per-epoch"), uses_of(o),
                                        needed(o.sigma, "--sigma"), needed(o.epochs, "--epochs"));
  return {{.mechanism = mechanism_of(o), .count = release_count(o)}};
}

std::vector<double> orders_of(const AccountantFlags& o) {
  if (o.orders.empty() && o.accountant == "rdp") {
    const std::span<const double> usual = privacy::default_orders();
    return {usual.begin(), usual.end()};
  }
  std::vector<double> orders;
  for (const std::string& text : o.orders) {
    if (text == "adaptive" && o.orders.size() == 1) return {};
    const std::optional<double> value = read_number<double>(text);
    if (!value)
      throw InputError("--orders: expected numbers separated by commas, or adaptive, found '" +
                       text + "'");
    orders.push_back(*value);
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
