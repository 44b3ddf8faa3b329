#include "runtime/report/summary.hpp"

#include <cmath>
#include <variant>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/rounded_text.hpp"
#include "runtime/report/sentences.hpp"

namespace cudp {
namespace {

using Sentence = std::vector<std::string>;

bool claims(const RunFacts& f) {
  return f.certificate && std::isfinite(f.certificate->stated.epsilon);
}

std::string against_whom(const char* others) {
  return fmt::format(
      "It is promised against anybody who has the published files, the program's source, and every "
      "other {}.",
      others);
}

Sentence whose(const RunFacts& f) {
  if (!claims(f)) return {"Nobody's: this model was trained without differential privacy."};
  const RunCertificate& c = *f.certificate;
  const char* const held = c.stated.holdout ? ", trained on or held out" : "";
  if (c.has_unit())
    return {fmt::format("That of each value of the column {}{}: all rows of the data set {} "
                        "with the same text in that column, together.",
                        quoted(c.stated.unit), held, quoted(f.dataset)),
            fmt::format("This page calls such rows a unit. At most {} rows of a unit were used.",
                        c.stated.max_rows),
            against_whom("unit")};
  return {fmt::format("That of each single row of the data set {}{}.", quoted(f.dataset), held),
          c.json.contains("groups") && c.json["groups"].is_array()
              ? "That of a person with several rows is weaker: see What was promised."
              : "Not that of a person with several rows: the numbers of this page do not hold for "
                "all of them together.",
          against_whom("row")};
}

/// Returns a probability in words, rounded up: "one in a million", "one in 333,000".
std::string one_in(double probability) {
  if (probability <= 1e-12) return "at most one in a trillion";
  double n = std::floor((1.0 + 1e-12) / probability);
  const double unit = n < 1000.0 ? 1.0 : std::pow(10.0, std::floor(std::log10(n)) - 2.0);
  n = std::floor(n / unit * (1.0 + 1e-12)) * unit;
  if (n == 1e6) return "one in a million";
  if (n == 1e9) return "one in a billion";
  std::string digits = fmt::format("{:.0f}", n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return "one in " + digits;
}

/// Returns a sentence that explains what epsilon and delta mean. one: name of the unit of privacy.
std::string parameters_in_words(const std::string& one, double delta) {
  return fmt::format(
      "Smaller is stronger: epsilon bounds how much more anybody can learn because one {} was in "
      "the data, and delta{}",
      one,
      delta > 0.0
          ? fmt::format(" is the probability with which that bound may fail, {}.", one_in(delta))
          : " 0 means that the bound does not fail.");
}

Sentence how_much(const RunFacts& f) {
  if (!claims(f)) return {"None: the weights and the figures may show any training example."};
  const verify::StatedNumbers& s = f.certificate->stated;
  const std::string one =
      f.certificate->has_unit() ? "value of " + quoted(s.unit) : std::string("row");
  Sentence all = {
      fmt::format("Epsilon {} at delta {}.", short_rounded_up(s.epsilon),
                  short_rounded_up(s.delta)),
      parameters_in_words(one, s.delta),
      fmt::format("Someone who could otherwise only toss a coin on whether a certain {} was in the "
                  "data, and be right in 50 % of all cases, is right in at most {} (rounded up) "
                  "with this release.",
                  one, percent_up(max_right_guesses(s.epsilon, s.delta))),
      fmt::format(
          "For someone who suspected it before, the odds grow by a factor of at most {}, but "
          "for the probability delta.",
          times_text(s.epsilon)),
      "No threshold is agreed on. " + std::string(kCustomary) + "."};
  if (!f.certificate->texts("not_for_release").empty())
    all.emplace_back("The reasons at the top weaken this, or break it.");
  if (s.epsilon > 10.0)
    all.emplace_back("That rules out very little.");
  else if (s.epsilon > 3.0)
    all.emplace_back("In the worst case, that is a weak promise.");
  return all;
}

Sentence left_out(const RunFacts& f) {
  if (!claims(f)) return {"Everything."};
  return sentences_under("not covered", *f.certificate);
}

Sentence may_publish(const RunFacts& f, Detail detail) {
  if (!f.certificate) return {"No. Nothing of this run may be published."};
  if (f.has_unpaid)
    return {
        "Not this page: it has figures that were not paid for. The pages in release/ have "
        "none."};
  const RunCertificate& c = *f.certificate;
  if (!c.texts("not_for_release").empty())
    return {"No. The reasons stand at the top, in red.", "No epsilon makes up for them."};
  Sentence all = {
      detail == Detail::page
          ? "Yes: the files of release/ that are listed under The files, this page among them."
          : "Yes: the files of this folder that report.html lists, this one among them."};
  if (c.stated.epsilon > 10.0 || !c.texts("warnings").empty())
    all = {"Nothing forbids it, but the promise is so weak that it protects next to nobody."};
  all.emplace_back("Never publish the run's folder private/.");
  all.emplace_back("Before you do, make sure of what the program cannot know:");
  all.emplace_back(
      fmt::format("- Other runs and publications about the same persons were added up{}.",
                  c.stated.tuning ? "" : ", those by which settings were chosen too"));
  if (!c.has_unit())
    all.emplace_back("- No person has several rows, or a weaker promise is enough for those.");
  if (!c.texts("assumptions").empty())
    all.emplace_back(detail == Detail::page
                         ? "- What is assumed of the files (see The data) is true."
                         : "- What is assumed of the files (see report.html) is true.");
  all.emplace_back(detail == Detail::page
                       ? "- What is taken on trust (see How to check it) is true."
                       : "- What is taken on trust (the last section of report.html) is true.");
  all.emplace_back(
      "Whether this epsilon is small enough for these persons is for you to decide. This is no "
      "statement about a law.");
  return all;
}

}  // namespace

std::string what_it_is(const RunFacts& f) {
  std::string predicted;
  if (f.schema)
    for (const Column& column : f.schema->columns)
      if (std::holds_alternative<Label>(column.kind) || std::holds_alternative<Target>(column.kind))
        predicted = " to predict " + quoted(column.name);
  const std::string on = "on rows of the data set " + quoted(f.dataset) + predicted;
  if (f.certificate && f.certificate->stated.status == "refused")
    return "A model was to be trained " + on +
           ", but the run was refused. The files of release/ say what it spent.";
  if (f.certificate && f.certificate->stated.status != "finished")
    return "A model was to be trained " + on + ", and the run is not finished.";
  return (f.model.empty() ? "A model" : "A model (" + f.model + ")") + " was trained " + on +
         (f.certificate ? ". The files of release/ are the result." : ".");
}

page::Answers in_short(const RunFacts& f, Detail detail) {
  return {.questions = {{"Whose privacy?", whose(f)},
                        {"How much?", how_much(f)},
                        {"What is not covered?", left_out(f)},
                        {"May I publish it?", may_publish(f, detail)}},
          .in_short = true};
}

page::Document headed(const std::string& title, const RunFacts& f) {
  page::Document d{.title = title,
                   .subtitle = f.subject(),
                   .not_for_release = {},
                   .reasons = {},
                   .alarms = {},
                   .sections = {}};
  const std::string kBanner = "NOT FOR RELEASE";
  if (!f.certificate) {
    d.not_for_release = kBanner + ": trained without privacy";
    d.reasons = {"Weights and figures of this run may show any training example."};
    return d;
  }
  const std::vector<std::string> reasons = f.certificate->texts("not_for_release");
  if (f.has_unpaid) {
    d.not_for_release = kBanner + ": for the run's owner alone";
    d.reasons.emplace_back(
        "This page has exact figures of rows that the promise does not cover, or that were not "
        "paid for.");
  } else if (!reasons.empty()) {
    d.not_for_release = kBanner;
  }
  d.reasons.insert(d.reasons.end(), reasons.begin(), reasons.end());
  if (f.certificate->stated.status == "refused")
    d.alarms.emplace_back(
        "Nothing was trained: the noisy row count allowed no plan. That count was released, and "
        "this page is about what it spent.");
  for (const std::string& warning : f.certificate->texts("warnings"))
    d.alarms.push_back("Warning: " + warning + ".");
  return d;
}

}  // namespace cudp
