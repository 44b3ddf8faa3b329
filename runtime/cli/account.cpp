#include <cmath>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "privacy/rdp/gaussian.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "privacy/text/number.hpp"
#include "runtime/cli/accountant.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/out_file.hpp"
#include "runtime/cli/privacy_curve.hpp"
#include "runtime/cli/run_certificate.hpp"
#include "runtime/config/option_rows.hpp"

namespace cudp {
namespace {

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

/// Computes the output of `cudp account --rdp-at`: the Renyi divergence (RDP) of one step at one
/// order.
Answer divergence_at(const AccountFlags& o) {
  unused("--rdp-at", "--zcdp", o.zcdp, "--phases", o.phases, "--steps", o.steps, "--delta", o.delta,
         "--epsilon", o.epsilon, "--groups", o.groups, "--curve", o.curve);
  const privacy::Mechanism mechanism = mechanism_of(o);
  const double rdp =
      privacy::rdp(mechanism, *o.rdp_at, {.relation = o.neighbours, .group = o.group});
  if (!std::isfinite(rdp))
    throw InputError("--rdp-at: expected an order with a divergence that double holds, found " +
                     privacy::number(*o.rdp_at));
  Answer a;
  a.add("rdp", rdp, rounded_up(rdp));
  a.add("order", *o.rdp_at, privacy::number(*o.rdp_at));
  add_releases(a, {{.mechanism = mechanism, .count = 1}});
  return a;
}

/// Computes the output of `cudp account --zcdp`: the (epsilon, delta) that follow from
/// zero-concentrated DP.
Answer zcdp_as_epsilon(const AccountFlags& o) {
  unused("--zcdp", "--steps-per-epoch", o.steps_per_epoch, "--uses", o.uses);
  unused("--zcdp", "--examples", o.examples, "--batch", o.batch, "--epochs", o.epochs, "--phases",
         o.phases, "--q", o.q, "--sigma", o.sigma, "--steps", o.steps, "--epsilon", o.epsilon,
         "--groups", o.groups, "--curve", o.curve);
  const double delta = needed(o.delta, "--delta");
  const double epsilon = privacy::epsilon_from_zcdp(*o.zcdp, delta);
  const double classical = privacy::epsilon_from_zcdp_classical(*o.zcdp, delta);
  Answer a;
  a.add("epsilon", epsilon, rounded_up(epsilon) + "  (Canonne, Kamath, Steinke 2020)");
  a.json["epsilon_classical"] = classical;
  a.rows.emplace_back("epsilon, classical", rounded_up(classical) + "  (Bun, Steinke 2016)");
  a.add("rho", *o.zcdp, privacy::number(*o.zcdp));
  a.add("delta", delta, privacy::number(delta));
  return a;
}

/// Returns whether the user gave a list of releases instead of --q and --sigma.
bool is_list(const AccountFlags& o) { return o.phases || !o.releases.empty(); }

std::vector<Release> releases_of(const AccountFlags& o) {
  if (!o.releases.empty()) {
    unused("a list of releases", "--phases", o.phases, "--q", o.q, "--sigma", o.sigma, "--steps",
           o.steps, "--n", o.n, "--batch", o.batch, "--examples", o.examples, "--epochs", o.epochs,
           "--steps-per-epoch", o.steps_per_epoch, "--uses", o.uses);
    return o.releases;
  }
  if (!o.phases) return described_releases(o);
  unused("--phases", "--q", o.q, "--sigma", o.sigma, "--steps", o.steps, "--n", o.n, "--batch",
         o.batch, "--examples", o.examples, "--epochs", o.epochs, "--steps-per-epoch",
         o.steps_per_epoch, "--uses", o.uses);
  return read_phases(*o.phases);
}

/// Computes the output of `cudp account --accountant gdp`: an estimate of epsilon or delta by the
/// central limit theorem. The output states that it is not an upper bound.
Answer gaussian_dp_estimate(const AccountFlags& o, const std::vector<Release>& releases) {
  unused("--accountant gdp", "--groups", o.groups, "--curve", o.curve, "--interval", o.interval);
  if (o.neighbours != privacy::NeighbouringRelation::add_or_remove)
    throw InputError("--neighbours: expected add-or-remove with --accountant gdp, found " +
                     name_of(o.neighbours));
  const privacy::GdpEstimate found =
      o.delta ? privacy::gdp_estimate_epsilon(releases, *o.delta, o.group)
              : privacy::gdp_estimate_delta(releases, *o.epsilon, o.group);
  const std::string warning = "an estimate by the central limit theorem, not an upper bound";
  Answer a;
  a.add("epsilon", found.estimated_epsilon, privacy::number(found.estimated_epsilon));
  for (const char* none : {"epsilon_add", "epsilon_remove", "epsilon_lower"})
    a.json[none] = nullptr;
  a.add("delta", found.estimated_delta, privacy::number(found.estimated_delta));
  a.add("accountant", "gdp", "gdp: " + warning);
  a.json.update({{"is_bound", false}, {"note", warning}, {"mu", found.mu}});
  a.add("group", o.group, std::to_string(o.group));
  a.json["sampling"] = is_list(o) ? "phases" : o.sampling;
  return a;
}

/// Returns a bound as JSON: epsilon, epsilon for adding and for removing an example, and a lower
/// bound.
nlohmann::ordered_json epsilons_of(const privacy::PrivacyBound& b) {
  return {{"epsilon", b.epsilon},
          {"epsilon_add", b.epsilon_add.value_or(b.epsilon)},
          {"epsilon_remove", b.epsilon_remove.value_or(b.epsilon)},
          {"epsilon_lower", b.epsilon_lower}};
}

/// Computes the output of `cudp account` with an accountant that gives upper bounds (all but gdp):
/// epsilon at --delta, or delta at --epsilon.
Answer bound_of(const AccountFlags& o, const privacy::Composition& composition,
                const privacy::AccountantOptions& options) {
  privacy::Accountant accountant(composition, options);
  privacy::PrivacyBound found =
      o.delta ? accountant.epsilon(*o.delta) : accountant.delta(*o.epsilon);
  // With several uses per epoch, the bound is that of other releases, which cost at least as much
  // (described_releases()). Their lower bounds do not hold for the actual releases.
  if (uses_of(o) > 1) found.epsilon_lower = found.delta_lower = 0.0;
  Answer a;
  const auto row = [&](const char* name, std::string text) {
    a.rows.emplace_back(name, std::move(text));
  };
  if (o.delta) {
    a.json = epsilons_of(found);
    row("epsilon", rounded_up(found.epsilon));
    if (found.epsilon_add && found.epsilon_remove) {
      row("  add one", rounded_up(*found.epsilon_add));
      row("  remove one", rounded_up(*found.epsilon_remove));
    }
    if (found.epsilon_lower > 0.0) row("  and at least", rounded_down(found.epsilon_lower));
    a.add("delta", found.delta, privacy::number(found.delta));
  } else {
    a.add("epsilon", found.epsilon, privacy::number(found.epsilon));
    a.add("delta", found.delta, rounded_up(found.delta));
    a.json.update({{"delta_add", found.delta_add.value_or(found.delta)},
                   {"delta_remove", found.delta_remove.value_or(found.delta)},
                   {"delta_lower", found.delta_lower}});
    if (found.delta_lower > 0.0) row("  and at least", rounded_down(found.delta_lower));
  }
  std::string how{privacy::bound_name(found)};
  a.json.update({{"accountant", o.accountant},
                 {"bound", how},
                 {"group", o.group},
                 {"neighbours", name_of(o.neighbours)},
                 {"sampling", is_list(o) ? "phases" : o.sampling}});
  if (found.order > 0.0) {
    a.json["order"] = found.order;
    how += ", at order " + privacy::number(found.order);
  }
  if (found.interval > 0.0) {
    a.json["interval"] = found.interval;
    if (how == "pld") how += ", interval " + privacy::number(found.interval);
  }
  row("bound by", how);
  row("neighbours",
      (o.group == 1 ? "" : "groups of " + std::to_string(o.group) + ", ") + name_of(o.neighbours));
  if (o.group == 1)
    row("privacy of", allocates(o) && !is_list(o)
                          ? "each row; no bound is known for persons with several rows"
                          : "each row; if a person can have up to k rows: --group k");
  return a;
}

/// Computes the output of `cudp account --groups`: epsilon for groups of 1 to --groups examples,
/// compared with the bounds that follow from the epsilon of a single example.
Answer group_table(const AccountFlags& o, const std::vector<GroupRow>& groups) {
  Answer a{.json = {{"delta", *o.delta},
                    {"accountant", o.accountant},
                    {"groups", nlohmann::ordered_json::array()}},
           .rows = {{"group", "epsilon      by Vadhan's lemma  k epsilon of one"}}};
  for (const GroupRow& g : groups) {
    nlohmann::ordered_json j{{"group", g.group}};
    j.update(epsilons_of(g.bound));
    j["vadhan"] = g.vadhan ? nlohmann::json(*g.vadhan) : nlohmann::json();
    j["k_epsilon_1"] = g.linear;
    a.json["groups"].push_back(std::move(j));
    a.rows.emplace_back(
        std::to_string(g.group),
        fmt::format("{:<13}{:<13}      {}", rounded_up(g.bound.epsilon),
                    g.vadhan ? rounded_up(*g.vadhan) : "none", rounded_up(g.linear)));
  }
  return a;
}

/// Computes the output of `cudp account RUN...`: an explanation of a run's certificate, its epsilon
/// with other settings, or the privacy that several runs spend together.
Answer answer_about_runs(const AccountFlags& o) {
  const AccountantFlags none;
  const bool several = !o.other_runs.empty();
  const bool others = o.epsilon || o.q || o.sigma || o.steps || o.n || o.batch || o.examples ||
                      o.epochs || o.steps_per_epoch || o.uses || o.interval || o.phases ||
                      o.curve || o.zcdp || o.rdp_at || o.groups || !o.orders.empty() ||
                      o.accountant != none.accountant || o.sampling != none.sampling ||
                      o.neighbours != none.neighbours || o.group != none.group;
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
  if (o.curve) check_out_folder(*o.curve, "--curve");
  if (o.fixed_ahead)
    throw InputError(
        "--fixed-ahead: expected several runs, as in cudp account RUN RUN, found none");
  if (!o.what_if.empty())
    throw InputError("--what-if: expected a run to change, as in cudp account RUN --what-if " +
                     o.what_if.front() + ", found none");
  if (!o.releases.empty()) unused("a list of releases", "--zcdp", o.zcdp, "--rdp-at", o.rdp_at);
  if (!o.zcdp && !is_list(o)) {
    fill_in_training(o);
    if (allocates(o)) {
      unused("--sampling allocation, which has no Renyi divergence", "--rdp-at", o.rdp_at);
      unused("--sampling allocation, which has no bound for groups", "--groups", o.groups);
    }
  }
  if (o.rdp_at) return divergence_at(o);
  if (o.zcdp) return zcdp_as_epsilon(o);
  std::vector<std::string> missing;
  if (!is_list(o)) missing = missing_release_flags(o);
  if (!o.epsilon && !o.delta) missing.emplace_back("one of --delta and --epsilon");
  refuse_missing("account", missing);
  if (o.epsilon.has_value() == o.delta.has_value())
    throw InputError(std::string("account: expected one of --delta and --epsilon, found ") +
                     (o.delta ? "both" : "none"));
  const std::vector<Release> releases = releases_of(o);
  if (o.accountant == "gdp") return gaussian_dp_estimate(o, releases);
  const privacy::Composition composition = composition_of(o, releases);
  const privacy::AccountantOptions options = bound_options(o);
  if (o.groups || o.curve) (void)needed(o.delta, "--delta");
  const std::uint64_t largest = o.groups ? *o.groups : o.curve ? o.group : 1;
  std::vector<GroupRow> groups;
  if (o.groups || largest > 1) groups = group_rows(composition, largest, *o.delta, options, busy);
  Answer answer = o.groups ? group_table(o, groups) : bound_of(o, composition, options);
  add_releases(answer, releases);
  if (o.curve) {
    if (largest > 1)
      draw_group_curve(groups, *o.delta, *o.curve);
    else
      draw_privacy_curve(composition, *o.delta, *o.curve, options);
    answer.add("curve", *o.curve, *o.curve);
  }
  return answer;
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
    "  cudp account --sampling allocation --steps-per-epoch 118 --epochs 20 --sigma 1 --delta "
    "1e-5\n"
    "  cudp account --phases phases.json --delta 1e-6\n"
    "  cudp account --zcdp 0.1 --delta 1e-5\n"
    "  cudp account --rdp-at 8.25 --q 0.001 --sigma 0.8 --json\n"
    "Mechanisms of --phases, and their numbers:\n"
    "  gaussian                    sigma\n"
    "  poisson-gaussian            q, sigma\n"
    "  fixed-size-gaussian         n, batch, sigma\n"
    "  truncated-poisson-gaussian  n, q, max_batch, sigma\n"
    "  allocated-gaussian          steps_per_epoch, sigma; epochs in place of steps\n"
    "  gaussian-mixture            sensitivities, probabilities, sigma\n"
    "  laplace                     scale\n"
    "  poisson-laplace             q, scale\n"
    "  bounded-range               epsilon\n"
    "  approximate-dp              epsilon, delta";

}  // namespace

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

Answer account_answer(const TrainConfig& config) {
  Busy busy("cudp account", Busy::Shown::never);
  return answered(config, answer_of, busy);
}

void add_account_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "account",
               .description = "Say what privacy a mechanism spends",
               .examples = kAccountExamples,
               .options = account_options(),
               .run = printed("account", answer_of)});
}

}  // namespace cudp
