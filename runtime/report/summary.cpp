#include "runtime/report/summary.hpp"

#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/rounded_text.hpp"
#include "runtime/report/sentences.hpp"

namespace cudp {
namespace {

using Sentence = std::vector<std::string>;

bool claims(const RunFacts& f) {
  return f.certificate && std::isfinite(f.certificate->stated.epsilon);
}

Sentence whose(const RunFacts& f) {
  if (!claims(f)) return {"Nobody's: this model was trained without differential privacy."};
  const RunCertificate& c = *f.certificate;
  const char* const held = c.stated.holdout ? ", trained on or held out" : "";
  if (c.has_unit())
    return {fmt::format("That of each unit{}: all rows of {} with the same text in the column "
                        "\"{}\", together.",
                        held, f.dataset, c.stated.unit),
            fmt::format("At most {} rows of a unit were used.", c.stated.max_rows)};
  return {fmt::format("That of each single row of {}{}.", f.dataset, held),
          "It is a person's privacy only if no person has several rows."};
}

Sentence how_much(const RunFacts& f) {
  if (!claims(f)) return {"None: the weights and the figures may show any training example."};
  const verify::StatedNumbers& s = f.certificate->stated;
  Sentence all = {
      fmt::format("Epsilon {} at delta {:.3g}.", short_rounded_up(s.epsilon), s.delta),
      fmt::format("Someone who guesses whether a certain {} was in the data is right in 50 % of "
                  "all cases without this release, and in at most {} with it.",
                  f.certificate->has_unit() ? "unit" : "row",
                  percent_up(max_right_guesses(s.epsilon, s.delta)))};
  if (!f.certificate->texts("not_for_release").empty())
    all.emplace_back("The reasons at the top weaken this, or break it.");
  if (s.epsilon > 10.0)
    all.emplace_back("That rules out very little.");
  else if (s.epsilon > 3.0)
    all.emplace_back("That is a weak promise.");
  return all;
}

Sentence left_out(const RunFacts& f) {
  if (!claims(f)) return {"Everything."};
  const RunCertificate& c = *f.certificate;
  Sentence all = {
      "Other runs and other publications about the same persons: their epsilons add up."};
  all.push_back(fmt::format(
      "{}: their epsilon is larger{}.",
      c.has_unit() ? "Several units together, for example a family" : "Several rows of one person",
      c.text("groups").empty() ? "" : ", and how large is not proved"));
  if (c.stated.test_set.starts_with("public"))
    all.emplace_back("The test rows, which count as public.");
  else if (c.stated.test_set.starts_with("not public") && !c.stated.holdout)
    all.emplace_back("The private test rows: exact figures of them are in private/.");
  all.emplace_back("What was seen of the training itself: its time, memory and messages.");
  for (const std::string& flag : c.texts("unsafe_flags")) all.push_back(flag + ".");
  return all;
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
  Sentence all = {detail == Detail::page
                      ? "Yes: this page and all of release/. Never publish private/."
                      : "Yes: all of this folder. Never publish the run's folder private/."};
  if (c.stated.epsilon > 10.0 || !c.texts("warnings").empty())
    all = {"Nothing forbids it, but the promise is so weak that it protects next to nobody."};
  if (!c.texts("assumptions").empty())
    all.emplace_back(detail == Detail::page
                         ? "That rests on assumptions about the files: see The data."
                         : "That rests on assumptions about the files: see report.html.");
  all.emplace_back("Whether this epsilon is small enough for these persons is for you to decide.");
  return all;
}

}  // namespace

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
