#include "runtime/report/questions.hpp"

#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/report/sentences.hpp"

namespace cudp {
namespace {

using Sentence = std::vector<std::string>;
using page::Answers;

constexpr const char* kNotStated = "Not stated.";

/// Collects the questions of a section with their answers. An answer without sentences becomes "Not
/// stated."
struct Asked {
  Answers answers;

  void add(const char* question, Sentence sentences) {
    if (sentences.empty()) sentences.emplace_back(kNotStated);
    answers.questions.emplace_back(question, std::move(sentences));
  }
};

std::string group_text(const RunCertificate& c) {
  if (!c.text("groups").empty())
    return "Not stated: the epsilon of a group is larger than that of one, but no number for it is "
           "proved.";
  if (!c.json.contains("groups")) return "";
  return "For groups of 2 to 16 the table above states epsilon, or why there is none.";
}

/// Returns a table of epsilon and delta with all their digits.
page::Table exact_parameters(const RunCertificate& c) {
  page::Table table{
      .caption = "The parameters with all their digits; sentences round epsilon up to three digits",
      .columns = {"of", "epsilon", "delta"},
      .rows = {}};
  const auto add = [&](const char* of, double epsilon, double delta) {
    table.rows.push_back({of, privacy::number(epsilon), privacy::number(delta)});
  };
  add("everything in release/", c.stated.epsilon, c.stated.delta);
  if (!c.stated.holdout) return table;
  add("rows trained on", c.stated.training_epsilon, c.stated.training_delta);
  add("rows held out", c.stated.holdout->epsilon, c.stated.holdout->delta);
  return table;
}

page::Section guarantee(const RunFacts& f) {
  const RunCertificate& c = *f.certificate;
  Asked q;
  if (c.has_unit())
    q.add("Unit of privacy",
          {fmt::format("All rows with one text in the column {}. The first {} rows of a unit are "
                       "used; later ones are read and left out.",
                       quoted(c.stated.unit), c.stated.max_rows)});
  else
    q.add("Unit of privacy",
          {"One row (one example). It is a person's privacy only if no person has several rows."});
  q.add("Neighbouring data sets",
        {fmt::format("Two data sets are neighbours if one has one {} more than the other and is "
                     "the same otherwise (add or remove one).",
                     c.has_unit() ? "unit" : "row")});
  Sentence parameters = {fmt::format(
      "(epsilon, delta) differential privacy with epsilon {} and delta {}, for everything in "
      "release/.",
      short_rounded_up(c.stated.epsilon), short_rounded_up(c.stated.delta))};
  if (c.stated.holdout && !c.stated.tuning)
    parameters.push_back(fmt::format(
        "Of rows trained on: {} and {}. Of rows held out: {} and {}.",
        short_rounded_up(c.stated.training_epsilon), short_rounded_up(c.stated.training_delta),
        short_rounded_up(c.stated.holdout->epsilon), short_rounded_up(c.stated.holdout->delta)));
  q.add("Privacy parameters", std::move(parameters));
  q.add("Is this epsilon customary?",
        {fmt::format("No threshold is agreed on: NIST SP 800-226 names none. For comparison, {}, "
                     "and the United States census of 2020 published its redistricting data at "
                     "epsilon 19.61.",
                     kCustomary)});
  if (std::string groups = group_text(c); !groups.empty())
    q.add("Groups", {std::move(groups)});
  else
    q.add("Groups", {});
  q.add("Composition with other releases",
        {"Not counted. Each other run or publication on the same rows has an epsilon of its own; "
         "the command \"cudp account RUN RUN\", with the runs' folders, adds those of runs."});
  if (c.stated.tuning)
    q.add(
        "Choice of settings",
        {fmt::format("Counted. cudp tune chose the settings among {} candidates by trainings on "
                     "these rows, about {:.3g} of them, and released the best one alone. One such "
                     "training has epsilon {} at delta {}.",
                     c.stated.tuning->grid.size(), c.stated.tuning->mean,
                     short_rounded_up(c.stated.training_epsilon),
                     short_rounded_up(c.stated.training_delta)),
         "Not covered: how long the tuning took, which shows the number of trainings, and "
         "settings that were chosen before by looking at other runs on the same rows."});
  else
    q.add("Choice of settings",
          {"If settings were chosen by looking at other runs on the same rows, those runs are " +
           c.text("hyperparameter_tuning") + "."});
  return {.id = "guarantee", .title = "The guarantee", .blocks = {q.answers, exact_parameters(c)}};
}

Sentence noise_of(const RunCertificate& c) {
  const verify::StatedNumbers& s = c.stated;
  Sentence all;
  if (c.json.contains("noise_over_time"))
    all.emplace_back("Gaussian noise that differs from step to step, by a rule fixed before.");
  else if (s.noise_std > 0.0)
    all.push_back(fmt::format(
        "Gaussian noise of standard deviation {:.4g}{}.", s.noise_std,
        s.sigma > 0.0 ? fmt::format(", {:.4g} times the sensitivity", s.sigma) +
                            (s.max_rows > 1 ? " to one row; the accountant counts with all rows of "
                                              "a unit"
                                            : "")
                      : std::string()));
  if (const std::string selection = c.text("selection_noise"); !selection.empty())
    all.push_back("Choices among candidates have noise of kind " + selection + ".");
  const std::string generator = c.text("rng");
  const std::string name =
      generator == "chacha20"
          ? "Random numbers are of ChaCha20, a cryptographic generator"
          : "Random numbers are of " + generator + ", which is not a cryptographic generator";
  if (c.json.value("seeded", false))
    all.push_back(name + ". The key was made from a seed, so the noise can be drawn again.");
  else
    all.push_back(name + ". The key was random, and is destroyed when the run ends.");
  return all;
}

Sentence sampler_of(const RunCertificate& c) {
  const verify::StatedNumbers& s = c.stated;
  if (s.sampling == "poisson" && s.threshold > 0)
    return {fmt::format(
        "Poisson sampling, as the accountant assumes: in each step every row is drawn by a secret "
        "coin of its own with probability {:.4g} (exactly {} / 2^32). Batches have no fixed size; "
        "the setting batch is their mean.",
        s.q, s.threshold)};
  if (s.sampling == "allocation")
    return {fmt::format(
        "Random allocation, as the accountant assumes: in each epoch every row is used in exactly "
        "one of {} steps, chosen at random, in secret, and anew in each epoch. Batches have no "
        "fixed size.",
        s.epoch_steps)};
  if (s.sampling == "importance")
    return {
        "Importance sampling: each row is drawn by a secret coin of its own, whose probability "
        "follows from the norm of its gradient and from earlier releases."};
  if (s.sampling == "all examples") return {"None: each release uses all rows."};
  if (s.sampling.empty()) return {};
  return {"Sampling: " + s.sampling + "."};
}

Sentence sensitivity_of(const RunCertificate& c) {
  const verify::StatedNumbers& s = c.stated;
  Sentence all;
  if (s.clip > 0.0)
    all.push_back(fmt::format("Each row's part in a sum is bounded to norm {:.4g}{}.", s.clip,
                              c.text("clipping").empty() ? "" : " (" + c.text("clipping") + ")"));
  if (s.sensitivity > 0.0)
    all.push_back(fmt::format("One row moves a released sum by at most {:.6g}{}.", s.sensitivity,
                              s.grid > 0.0 ? ", rounding included" : ""));
  if (const double norm = c.number("max_norm"); norm > 0.0)
    all.push_back(fmt::format("Each row is scaled to norm {:.4g} at most.", norm));
  if (s.max_rows > 1)
    all.push_back(fmt::format(
        "A unit moves it by up to {0} times that; the accountant counts with {0} rows at once.",
        s.max_rows));
  return all;
}

/// Returns a sentence that states between which numbers the true epsilon lies; "" if the
/// certificate states no lower bound.
std::string interval_of_epsilon(const RunCertificate& c) {
  const verify::StatedNumbers& s = c.stated;
  const double low = c.number("epsilon_lower"), high = s.plan_epsilon();
  if (!(low > 0.0)) return "";
  // In these cases the lower bound and the stated epsilon are not about the same releases, so they
  // are not the ends of one interval.
  const bool differs = s.status == "refused" || s.tuning || s.lost_a_key() || s.order_fixed ||
                       c.json.contains("filter");
  if (differs || !(low <= high) || !std::isfinite(high))
    return fmt::format("Epsilon of these releases is at least {}.", rounded_down(low));
  constexpr double kTight = 0.99;
  return fmt::format(
      "In the worst case that the accountant counts with, the true epsilon of {} lies between {} "
      "and {}{}.",
      s.split ? "the releases after the noisy row count" : "these releases", rounded_down(low),
      rounded_up(high), low >= kTight * high ? ", so the bound is tight" : "");
}

/// Returns the commit's hash; if it ends with "-dirty", with an explanation of that.
std::string commit_text(const std::string& commit) {
  return commit.ends_with("-dirty")
             ? commit + " (the source had changes that are not in that commit)"
             : commit;
}

page::Section mechanism(const RunFacts& f) {
  const RunCertificate& c = *f.certificate;
  const verify::StatedNumbers& s = c.stated;
  Asked q;
  q.add("Mechanism", {c.text("mechanism") + "."});
  Sentence steps = sentences_under("how", c);
  if (!steps.empty()) q.add("How often, and on what", std::move(steps));
  q.add("Bounded contributions (sensitivity)", sensitivity_of(c));
  Sentence accountant = {
      fmt::format("{}, of cudp {}.", s.accountant, c.text("accountant_version"))};
  if (const std::string text = interval_of_epsilon(c); !text.empty()) accountant.push_back(text);
  if (s.failure > 0.0)
    accountant.push_back(fmt::format("Of delta, {} is set aside for errors of rounding.",
                                     short_rounded_up(s.failure)));
  if (c.json.contains("filter"))
    accountant.emplace_back(
        "Releases were chosen on the way, and a filter admitted each that the budget allowed.");
  q.add("Accountant", std::move(accountant));
  q.add("What was released", sentences_under("released", c));
  q.add("Bias between groups of persons",
        {"Not stated: no figure is computed for one group of persons and another."});
  return {.id = "mechanism", .title = "The mechanism", .blocks = {q.answers}};
}

page::Section implementation(const RunFacts& f) {
  const RunCertificate& c = *f.certificate;
  Asked q;
  q.add("Noise and random numbers", noise_of(c));
  q.add("Sampler", sampler_of(c));
  Sentence rounding;
  if (c.text("arithmetic").starts_with("proved for real numbers"))
    rounding.emplace_back(
        "The proof is for real numbers. What the rounding of floating-point numbers reveals is "
        "not covered.");
  else if (c.json.contains("noise") || c.stated.grid > 0.0)
    rounding.push_back(fmt::format(
        "Sums are added as whole numbers on a grid, and noise is rounded to it{}, so released "
        "sums have no low bits of their own. The proof is in privacy/README.md of cudp.",
        c.stated.grid > 0.0 ? fmt::format(" (step {:.3g})", c.stated.grid) : std::string()));
  else if (std::ranges::any_of(c.stated.noisy_values,
                               [](const privacy::NoisyValue& v) { return v.grid > 0.0; }))
    rounding.emplace_back(
        "Released sums and their noise are rounded to a grid. The proof is in privacy/README.md of "
        "cudp.");
  if (const std::string precision = c.text("precision"); !precision.empty())
    rounding.push_back("Matrix products were computed in " + precision + ".");
  q.add("Floating point", std::move(rounding));
  q.add("Side channels",
        {"Not covered: the time that steps took, memory, and messages about rows that do not fit "
         "the schema, for anyone who watched the training. No file in release/ has a clock or a "
         "duration."});
  const auto build = [&](const char* key) {
    return c.json.contains("build") && c.json["build"].is_object()
               ? c.json["build"].value(key, std::string("unknown"))
               : std::string("unknown");
  };
  q.add("Program",
        {fmt::format("cudp {}, commit {}, built by {}, on {}.", build("version"),
                     commit_text(build("commit")), build("compiler"), build("backend"))});
  q.add("Tests of the program",
        {"Not part of this run: attacks on trainings (cudp audit), and the tests of the source."});
  return {.id = "implementation", .title = "The implementation", .blocks = {q.answers}};
}

page::Section deployment(const RunFacts& f) {
  const RunCertificate& c = *f.certificate;
  Asked q;
  q.add("Trust model",
        {"Central: the machine that trained has read the rows as they are. The guarantee is about "
         "what it released."});
  q.add("Queries",
        {"None are answered: the files of release/ are all that is released. Predictions of the "
         "released model cost no more privacy, as often as they are made; the rows that are "
         "predicted are not protected."});
  q.add("Who may see what",
        {"release/ is for everybody once you publish it. private/ is for the run's owner alone "
         "(its folder has mode 0700), and nothing of it is covered."});
  q.add("Who is responsible, and under which law",
        {"Not stated: that is yours to state. No part of this page is a statement about a law."});
  q.add("Access to the rows, and how long they are kept", {});
  q.add("How the data were collected, and with what consent", {});
  q.add("Purpose of the release", {});
  const bool lost = c.stated.lost_a_key();
  q.add("Incidents",
        {lost ? "The key of the noise was lost or renewed on the way; the steps since the last "
                "checkpoint were paid for again."
              : "None: the key of the noise was there until the run ended, so no step was repeated "
                "and paid for twice."});
  return {.id = "deployment", .title = "Deployment", .blocks = {q.answers}};
}

std::string bounds_text(const std::optional<double>& low, const std::optional<double>& high) {
  if (!low || !high) return "no bounds";
  return number_text(*low) + " to " + number_text(*high);
}

std::string values_text(const std::vector<std::string>& values) {
  constexpr std::size_t kShown = 12;
  std::string all;
  for (std::size_t i = 0; i < values.size() && i < kShown; ++i)
    all += (i == 0 ? "" : " | ") + values[i];
  if (values.size() > kShown) all += fmt::format(" | and {} more", values.size() - kShown);
  return all;
}

struct ColumnText {
  std::vector<std::string> operator()(const Unstated&) const { return {"not stated", ""}; }
  std::vector<std::string> operator()(const Numeric& n) const {
    return {n.date_format.empty() ? "number" : "date", bounds_text(n.min, n.max)};
  }
  std::vector<std::string> operator()(const Categorical& c) const {
    return {"category", values_text(c.values)};
  }
  std::vector<std::string> operator()(const Label& l) const {
    return {"class to predict", values_text(l.values)};
  }
  std::vector<std::string> operator()(const Target& t) const {
    return {"number to predict", bounds_text(t.min, t.max)};
  }
  std::vector<std::string> operator()(const Text&) const { return {"text", "any"}; }
  std::vector<std::string> operator()(const Ignored&) const { return {"not used", ""}; }
  std::vector<std::string> operator()(const Id&) const { return {"not used: an identifier", ""}; }
};

}  // namespace

std::vector<page::Section> questions_of(const RunFacts& f) {
  return {guarantee(f), mechanism(f), implementation(f), deployment(f)};
}

std::vector<page::Block> columns_of(const RunFacts& f) {
  if (!f.schema) return {};
  page::Table table{.caption = "Columns, with the bounds and values that the schema makes public",
                    .columns = {"column", "use", "bounds or values"},
                    .rows = {}};
  for (const Column& c : f.schema->columns) {
    std::vector<std::string> row = std::visit(ColumnText{}, c.kind);
    row.insert(row.begin(), c.name);
    if (f.schema->unit && f.schema->unit->column == c.name) row[1] = "unit of privacy";
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace cudp
