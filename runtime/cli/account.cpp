#include <cmath>

#include "privacy/rdp/gaussian.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "privacy/text/number.hpp"
#include "runtime/cli/accountant.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/explain.hpp"
#include "runtime/cli/privacy_curve.hpp"
#include "runtime/cli/several_runs.hpp"
#include "runtime/cli/what_if.hpp"
#include "runtime/config/option_rows.hpp"

namespace cudp {
namespace {

using privacy::number;
using privacy::Release;

struct AccountFlags : AccountantFlags {
  std::string run;
  std::vector<std::string> other_runs;
  std::vector<std::string> what_if;
  bool fixed_ahead = false;
  std::optional<std::string> phases, curve;
  std::optional<double> zcdp, rdp_at;
  std::optional<std::uint64_t> groups;
};

/// The Renyi divergence of one step at one order.
Answer divergence_at(const AccountFlags& o) {
  const char* with = "--rdp-at";
  unused(o.zcdp, "--zcdp", with);
  unused(o.phases, "--phases", with);
  unused(o.steps, "--steps", with);
  unused(o.delta, "--delta", with);
  unused(o.epsilon, "--epsilon", with);
  unused(o.groups, "--groups", with);
  unused(o.curve, "--curve", with);
  const privacy::Mechanism mechanism = mechanism_of(o);
  const double rdp =
      privacy::rdp(mechanism, *o.rdp_at, {.relation = o.neighbours, .group = o.group});
  if (!std::isfinite(rdp))
    throw InputError("--rdp-at: expected an order with a divergence that double holds, found " +
                     number(*o.rdp_at));
  Answer answer{.json = {{"rdp", rdp}, {"order", *o.rdp_at}},
                .rows = {{"rdp", rounded_up(rdp)}, {"order", number(*o.rdp_at)}}};
  add_releases(answer, std::vector<Release>(1, {.mechanism = mechanism, .count = 1}));
  return answer;
}

/// Zero-concentrated DP as (epsilon, delta).
Answer zcdp_as_epsilon(const AccountFlags& o) {
  const char* with = "--zcdp";
  unused(o.examples, "--examples", with);
  unused(o.batch, "--batch", with);
  unused(o.epochs, "--epochs", with);
  unused(o.phases, "--phases", with);
  unused(o.q, "--q", with);
  unused(o.sigma, "--sigma", with);
  unused(o.steps, "--steps", with);
  unused(o.epsilon, "--epsilon", with);
  unused(o.groups, "--groups", with);
  unused(o.curve, "--curve", with);
  const double delta = needed(o.delta, "--delta");
  const double epsilon = privacy::epsilon_from_zcdp(*o.zcdp, delta);
  const double classical = privacy::epsilon_from_zcdp_classical(*o.zcdp, delta);
  return {.json = {{"epsilon", epsilon},
                   {"epsilon_classical", classical},
                   {"rho", *o.zcdp},
                   {"delta", delta}},
          .rows = {{"epsilon", rounded_up(epsilon) + "  (Canonne, Kamath, Steinke 2020)"},
                   {"epsilon, classical", rounded_up(classical) + "  (Bun, Steinke 2016)"},
                   {"rho", number(*o.zcdp)},
                   {"delta", number(delta)}}};
}

std::vector<Release> releases_of(const AccountFlags& o) {
  if (!o.phases)
    return std::vector<Release>(
        1, {.mechanism = mechanism_of(o), .count = needed(o.steps, "--steps")});
  unused(o.q, "--q", "--phases");
  unused(o.sigma, "--sigma", "--phases");
  unused(o.steps, "--steps", "--phases");
  unused(o.n, "--n", "--phases");
  unused(o.batch, "--batch", "--phases");
  unused(o.examples, "--examples", "--phases");
  unused(o.epochs, "--epochs", "--phases");
  return read_phases(*o.phases);
}

/// The central limit theorem's estimate. It says so wherever it is shown.
Answer gaussian_dp_estimate(const AccountFlags& o, const std::vector<Release>& releases) {
  const char* with = "--accountant gdp";
  unused(o.interval, "--interval", with);
  if (o.neighbours != privacy::NeighbouringRelation::add_or_remove)
    throw InputError("--neighbours: expected add-or-remove with --accountant gdp, found " +
                     name_of(o.neighbours));
  const privacy::GdpEstimate found =
      o.delta ? privacy::gdp_estimate_epsilon(releases, *o.delta, o.group)
              : privacy::gdp_estimate_delta(releases, *o.epsilon, o.group);
  const char* warning = "an estimate by the central limit theorem, not an upper bound";
  return {.json = {{"epsilon", found.estimated_epsilon},
                   {"epsilon_add", nullptr},
                   {"epsilon_remove", nullptr},
                   {"epsilon_lower", nullptr},
                   {"delta", found.estimated_delta},
                   {"accountant", "gdp"},
                   {"is_bound", false},
                   {"note", warning},
                   {"mu", found.mu},
                   {"group", o.group},
                   {"sampling", o.phases ? "phases" : o.sampling}},
          .rows = {{"epsilon", number(found.estimated_epsilon)},
                   {"delta", number(found.estimated_delta)},
                   {"accountant", std::string("gdp: ") + warning},
                   {"group", std::to_string(o.group)}}};
}

/// A bound and its parts: the larger direction, each direction, and how low the truth may be.
Answer bound_of(const AccountFlags& o, const privacy::Composition& composition,
                const privacy::AccountantOptions& options) {
  privacy::Accountant accountant(composition, options);
  const privacy::PrivacyBound found =
      o.delta ? accountant.epsilon(*o.delta) : accountant.delta(*o.epsilon);
  const std::string bound{privacy::bound_name(found)};
  Answer a;
  if (o.delta) {
    a.json = {{"epsilon", found.epsilon},
              {"epsilon_add", found.epsilon_add.value_or(found.epsilon)},
              {"epsilon_remove", found.epsilon_remove.value_or(found.epsilon)},
              {"epsilon_lower", found.epsilon_lower},
              {"delta", found.delta}};
    a.rows = {{"epsilon", rounded_up(found.epsilon)}};
    if (found.epsilon_add && found.epsilon_remove) {
      a.rows.emplace_back("  add one", rounded_up(*found.epsilon_add));
      a.rows.emplace_back("  remove one", rounded_up(*found.epsilon_remove));
    }
    if (found.epsilon_lower > 0.0)
      a.rows.emplace_back("  and at least", rounded_down(found.epsilon_lower));
    a.rows.emplace_back("delta", number(found.delta));
  } else {
    a.json = {{"epsilon", found.epsilon},
              {"delta", found.delta},
              {"delta_add", found.delta_add.value_or(found.delta)},
              {"delta_remove", found.delta_remove.value_or(found.delta)},
              {"delta_lower", found.delta_lower}};
    a.rows = {{"epsilon", number(found.epsilon)}, {"delta", rounded_up(found.delta)}};
    if (found.delta_lower > 0.0)
      a.rows.emplace_back("  and at least", rounded_down(found.delta_lower));
  }
  a.json.update({{"accountant", o.accountant},
                 {"bound", bound},
                 {"group", o.group},
                 {"neighbours", name_of(o.neighbours)},
                 {"sampling", o.phases ? "phases" : o.sampling}});
  std::string how = bound;
  if (found.order > 0.0) {
    a.json["order"] = found.order;
    how += ", at order " + number(found.order);
  }
  if (found.interval > 0.0) {
    a.json["interval"] = found.interval;
    if (bound == "pld") how += ", interval " + number(found.interval);
  }
  a.rows.emplace_back("bound by", how);
  a.rows.emplace_back(
      "neighbours",
      (o.group == 1 ? "" : "groups of " + std::to_string(o.group) + ", ") + name_of(o.neighbours));
  if (o.group == 1)
    a.rows.emplace_back("privacy of", "each row; if a person can have up to k rows: --group k");
  return a;
}

/// Epsilon of groups of every size up to --groups, beside what the single example's would imply.
Answer group_table(const AccountFlags& o, const std::vector<GroupRow>& rows) {
  const double delta = needed(o.delta, "--delta");
  Answer a{
      .json = {{"delta", delta}, {"accountant", o.accountant}, {"groups", nlohmann::json::array()}},
      .rows = {{"group", "epsilon      by Vadhan's lemma  k epsilon of one"}}};
  for (const GroupRow& row : rows) {
    a.json["groups"].push_back(
        {{"group", row.group},
         {"epsilon", row.bound.epsilon},
         {"epsilon_add", row.bound.epsilon_add.value_or(row.bound.epsilon)},
         {"epsilon_remove", row.bound.epsilon_remove.value_or(row.bound.epsilon)},
         {"epsilon_lower", row.bound.epsilon_lower},
         {"vadhan", row.vadhan ? nlohmann::json(*row.vadhan) : nlohmann::json()},
         {"k_epsilon_1", row.linear}});
    const auto column = [](std::string text) {
      text.resize(std::max<std::size_t>(text.size(), 13), ' ');
      return text;
    };
    a.rows.emplace_back(std::to_string(row.group),
                        column(rounded_up(row.bound.epsilon)) +
                            column(row.vadhan ? rounded_up(*row.vadhan) : "none") + "      " +
                            rounded_up(row.linear));
  }
  return a;
}

/// Says what a run's certificate means, or would say of other settings, or what several runs spend.
Answer answer_about_runs(const AccountFlags& o) {
  const AccountantFlags none;
  const bool several = !o.other_runs.empty();
  const bool others = o.epsilon || o.q || o.sigma || o.steps || o.n || o.batch || o.examples ||
                      o.epochs || o.interval || o.phases || o.curve || o.zcdp || o.rdp_at ||
                      o.groups || !o.orders.empty() || o.accountant != none.accountant ||
                      o.sampling != none.sampling || o.neighbours != none.neighbours ||
                      o.group != none.group;
  if (several) {
    if (others || !o.what_if.empty())
      throw InputError(
          "account: expected no flags but --delta, --fixed-ahead and --json with several runs, "
          "found others");
    std::vector<std::string> runs = {o.run};
    runs.insert(runs.end(), o.other_runs.begin(), o.other_runs.end());
    return several_runs(runs, o.delta, o.fixed_ahead);
  }
  if (others || o.delta || o.fixed_ahead)
    throw InputError("account " + o.run +
                     ": expected no flags but --what-if and --json with a run, found others");
  return o.what_if.empty() ? explained(o.run) : what_if(o.run, o.what_if);
}

Answer answer_of(AccountFlags o, Busy& busy) {
  if (!o.run.empty()) return answer_about_runs(o);
  if (o.fixed_ahead)
    throw InputError(
        "--fixed-ahead: expected several runs, as in cudp account RUN RUN, found none");
  if (!o.what_if.empty())
    throw InputError("--what-if: expected a run to change, as in cudp account RUN --what-if " +
                     o.what_if.front() + ", found none");
  if (!o.zcdp && !o.phases) fill_in_training(o);
  if (o.rdp_at) return divergence_at(o);
  if (o.zcdp) return zcdp_as_epsilon(o);
  std::vector<std::string> missing;
  if (!o.phases) missing = missing_release_flags(o);
  if (!o.epsilon && !o.delta) missing.emplace_back("one of --delta and --epsilon");
  if (missing.size() == 1 && missing.front().starts_with("--steps"))
    throw InputError(
        "account: expected --epochs with --examples and --batch, or --steps, found "
        "neither");
  refuse_missing("account", missing);
  if (o.epsilon.has_value() == o.delta.has_value())
    throw InputError(std::string("account: expected one of --delta and --epsilon, found ") +
                     (o.delta ? "both" : "none"));
  const std::vector<Release> releases = releases_of(o);
  if (o.accountant == "gdp") {
    unused(o.groups, "--groups", "--accountant gdp");
    unused(o.curve, "--curve", "--accountant gdp");
    return gaussian_dp_estimate(o, releases);
  }
  const privacy::Composition composition = composition_of(o, releases);
  const privacy::AccountantOptions options = bound_options(o);
  const std::uint64_t largest = o.groups ? *o.groups : o.curve ? o.group : 1;
  std::vector<GroupRow> rows;
  if (o.groups || largest > 1)
    rows = group_rows(composition, largest, needed(o.delta, "--delta"), options, busy);
  Answer answer = o.groups ? group_table(o, rows) : bound_of(o, composition, options);
  add_releases(answer, releases);
  if (o.curve) {
    const double delta = needed(o.delta, "--delta");
    if (largest > 1)
      draw_group_curve(rows, delta, *o.curve);
    else
      draw_privacy_curve(composition, delta, *o.curve, options);
    answer.json["curve"] = *o.curve;
    answer.rows.emplace_back("curve", *o.curve);
  }
  return answer;
}

std::vector<Option> account_options() {
  using namespace option_rows;
  using Flags = AccountFlags;
  std::vector<Option> all = {
      optional_positional(
          text("run", "RUN", &Flags::run,
               "A run's folder, its release folder or a privacy.json: explains it")),
      optional_positional(list("other-runs", "RUN", &Flags::other_runs, {},
                               "More of them, on the same data: what they spend together")),
      toggle("fixed-ahead", &Flags::fixed_ahead,
             "With several runs: no setting of one was chosen by looking at another"),
      list("what-if", "KEY=VALUE ...", &Flags::what_if, {},
           "With RUN: epsilon had epochs, steps, batch, sigma, epsilon or delta been this; several "
           "changes at once are joined by +")};
  for (Option& row : accountant_rows(true)) all.push_back(std::move(row));
  all.insert(
      all.end(),
      {text("phases", "FILE", &Flags::phases,
            "JSON file: a list of {\"q\": ..., \"sigma\": ..., \"steps\": ...} or "
            "{\"mechanism\": NAME, ..., \"steps\": ...}, in place of --q, --sigma, --steps"),
       integer("groups", "N", &Flags::groups, kWhole,
               "Epsilon of groups of 1 to this many, and what Vadhan's lemma gives"),
       text("curve", "FILE", &Flags::curve,
            "Draw a PNG: epsilon over group size with --group or --groups, or else delta over "
            "epsilon"),
       option_rows::number("zcdp", "RHO", &Flags::zcdp, kFromZero,
                           "Convert this rho of zero-concentrated DP"),
       option_rows::number("rdp-at", "A", &Flags::rdp_at, kAboveZero,
                           "Renyi divergence of one step, at this order, in nats")});
  return all;
}

constexpr const char* kAccountExamples =
    "Examples:\n"
    "  cudp account runs/mine\n"
    "  cudp account runs/first runs/second runs/third\n"
    "  cudp account runs/mine --what-if epochs=40 epochs=40+batch=1024 epsilon=1\n"
    "  cudp account --examples 60000 --batch 512 --epochs 40 --sigma 1.1 --delta 1e-5\n"
    "  cudp account --q 0.01 --sigma 1.0 --steps 2000 --delta 1e-6\n"
    "  cudp account --q 0.01 --sigma 1.0 --steps 2000 --epsilon 2 --json\n"
    "  cudp account --q 0.01 --sigma 1.0 --steps 2000 --delta 1e-6 --groups 16 --curve "
    "groups.png\n"
    "  cudp account --sampling fixed --n 50000 --batch 500 --sigma 2 --steps 2000 --delta 1e-6\n"
    "  cudp account --phases phases.json --delta 1e-6\n"
    "  cudp account --zcdp 0.1 --delta 1e-5\n"
    "  cudp account --rdp-at 8.25 --q 0.001 --sigma 0.8 --json\n"
    "Mechanisms of --phases: gaussian (sigma), poisson-gaussian (q, sigma), fixed-size-gaussian\n"
    "(n, batch, sigma), truncated-poisson-gaussian (n, q, max_batch, sigma), gaussian-mixture\n"
    "(sensitivities, probabilities, sigma), laplace (scale), poisson-laplace (q, scale),\n"
    "bounded-range (epsilon), approximate-dp (epsilon, delta).";

}  // namespace

void add_account_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "account",
               .description = "Say what privacy a mechanism spends",
               .examples = kAccountExamples,
               .options = account_options(),
               .run = printed("account", answer_of)});
}

}  // namespace cudp
