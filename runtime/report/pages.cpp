#include "runtime/report/pages.hpp"

#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "privacy/text/number.hpp"
#include "privacy/verify/released.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/report/charts.hpp"
#include "runtime/report/questions.hpp"
#include "runtime/report/sentences.hpp"
#include "runtime/report/summary.hpp"
#include "runtime/results/evaluation_report.hpp"

namespace cudp {
namespace {

using page::Block;
using page::Bullets;
using page::Code;
using page::Document;
using page::Paragraph;
using page::Section;

/// Keys of the settings that pages show, in this order. config.toml has all settings.
constexpr const char* kShownSettings[] = {
    "dataset",   "model",           "activation",     "features",
    "normalise", "method",          "preset",         "epsilon",
    "delta",     "sigma",           "clip",           "clipping",
    "batch",     "epochs",          "steps",          "lr",
    "optimizer", "momentum",        "schedule",       "loss",
    "holdout",   "holdout-epsilon", "holdout-delta",  "seed",
    "rng",       "accountant",      "size-is-public", "test-data-is-public",
    "malformed", "precision",       "device"};

/// Returns questions and answers about what the guarantee means if an attacker has the published
/// files.
page::Answers attacker_of(const RunCertificate& c) {
  const char* const one = c.has_unit() ? "unit" : "row";
  std::vector<std::string> cannot = {
      fmt::format("Guess better than that whether a certain {0} was used, even with every other "
                  "{0} and the source of the program at hand.",
                  one),
      fmt::format("Become much surer of anything about a certain {} than if it had been left out: "
                  "no conclusion is more than {} times as likely, but for the small probability "
                  "stated above.",
                  one, times_text(c.stated.epsilon)),
      "Weaken the promise by computing anything from this release. Only other releases about the "
      "same persons do."};
  if (!c.texts("not_for_release").empty())
    cannot.emplace_back("The reasons at the top weaken this, or break it.");
  return {.questions = {
              {"What an attacker can do",
               {fmt::format("Guess whether a certain {} was used, and be right as often as stated "
                            "above.",
                            one),
                "Learn what is true of people in general. The model may predict something about a "
                "person from what else is known of them, whether or not that person was in the "
                "data.",
                "Combine this release with others about the same persons."}},
              {"What an attacker cannot do", std::move(cannot)}}};
}

Section promise_of(const RunCertificate& c) {
  Section s{.id = "promise", .title = "What was promised", .blocks = {}};
  for (const Sentences& part : sentences_of(c))
    if (part.heading == "promise" || part.heading == "meaning")
      for (const std::string& sentence : part.sentences) s.blocks.push_back(Paragraph{sentence});
  s.blocks.push_back(attacker_of(c));
  if (!c.json.contains("groups") || !c.json["groups"].is_array()) return s;
  page::Table table{
      .caption = c.has_unit() ? "Several units together" : "Several rows of one person together",
      .columns = {c.has_unit() ? "units" : "rows", "epsilon"},
      .rows = {}};
  for (const nlohmann::json& row : c.json["groups"]) {
    if (!row.is_object()) continue;
    const char* const key = c.has_unit() ? "units" : "examples";
    const auto number = [&](const char* name) {
      return row.contains(name) && row[name].is_number() ? row[name].get<double>() : std::nan("");
    };
    const double epsilon = number("epsilon");
    table.rows.push_back({fmt::format("{:.0f}", number(key)),
                          epsilon >= 0.0 && std::isfinite(epsilon)
                              ? rounded_up(epsilon)
                              : "none stated: " + row.value("reason", std::string("no reason"))});
  }
  s.blocks.push_back(table);
  return s;
}

Section not_covered_of(const RunCertificate& c) {
  Section s{.id = "not-covered", .title = "What is not covered", .blocks = {}};
  s.blocks.push_back(Bullets{sentences_under("not covered", c)});
  return s;
}

Section results_of(const RunFacts& f, const ReportFiles& files) {
  Section s{.id = "results",
            .title = f.is_private() ? "Budget and figures" : "Figures",
            .blocks = charts_of(f)};
  for (Block& b : figures_of(f, files)) s.blocks.push_back(std::move(b));
  if (!f.is_private()) return s;
  for (const Sentences& part : sentences_of(*f.certificate))
    if (part.heading == "test rows")
      s.blocks.push_back(page::Answers{.questions = {{"Test rows", part.sentences}}});
  return s;
}

Section data_of(const RunFacts& f) {
  Section s{.id = "data", .title = "The data", .blocks = {}};
  page::Answers a;
  const auto add = [&](const char* question, std::vector<std::string> sentences) {
    a.questions.emplace_back(question, std::move(sentences));
  };
  add("Data set", {quoted(f.dataset) + "."});
  if (f.certificate) {
    const verify::StatedNumbers& c = f.certificate->stated;
    if (c.examples)
      add("Rows trained on", {fmt::format("{}, which counts as public.", *c.examples)});
    else if (c.size_noise > 0.0)
      add("Rows trained on",
          {fmt::format("About {:.0f}: a noisy count, with noise of standard deviation {:.3g}.",
                       c.size, c.size_noise)});
    else
      add("Rows trained on", {"Not stated."});
    std::vector<std::string> assumed = f.certificate->texts("assumptions");
    for (std::string& text : assumed) text = fmt::format("It is assumed: {}.", text);
    if (assumed.empty()) assumed.emplace_back("None is stated.");
    add("Assumptions about the files", std::move(assumed));
  }
  s.blocks.push_back(a);
  for (Block& b : columns_of(f)) s.blocks.push_back(std::move(b));
  return s;
}

Section settings_of(const RunFacts& f) {
  page::Table table{.caption = "Settings of the run; config.toml has all of them",
                    .columns = {"setting", "value"},
                    .rows = {}};
  const auto is_shown = [&](const std::string& key) {
    // These settings are shown only if they are true. A named data set has a public size and public
    // test rows without these flags, so false would contradict the rest of the page.
    constexpr std::string_view kStatedIfTrue[] = {"size-is-public", "test-data-is-public"};
    if (std::ranges::find(kStatedIfTrue, key) != std::end(kStatedIfTrue) &&
        (!f.settings.has(key) || f.settings.text(key) == "false"))
      return false;
    constexpr std::string_view kOfPrivacy[] = {"clip", "clipping", "rng", "accountant",
                                               "size-is-public"};
    return f.settings.has(key) &&
           (f.is_private() || std::ranges::find(kOfPrivacy, key) == std::end(kOfPrivacy));
  };
  for (const char* const key : kShownSettings)
    if (is_shown(key)) table.rows.push_back({key, f.settings.text(key)});
  return {.id = "settings", .title = "Settings", .blocks = {table}};
}

/// Returns Python code that computes epsilon from the certificate's releases with the package
/// dp_accounting; "" if that package does not support these releases.
std::string dp_accounting_code(const verify::StatedNumbers& c) {
  if (c.max_rows > 1 || c.split || c.holdout || c.tuning || c.releases.empty()) return "";
  // With a filter, or after a lost key, epsilon is that of the budget, not of the releases made.
  if (c.order_fixed || c.lost_a_key()) return "";
  constexpr std::size_t kMostReleases = 12;
  if (c.releases.size() > kMostReleases) return "";
  std::string events;
  for (const privacy::Release& r : c.releases) {
    std::string event;
    if (const auto* sampled = std::get_if<privacy::PoissonGaussian>(&r.mechanism))
      event = fmt::format(
          "dp_event.PoissonSampledDpEvent(\n            {}, dp_event.GaussianDpEvent({}))",
          privacy::number(sampled->q), privacy::number(sampled->sigma));
    else if (const auto* gaussian = std::get_if<privacy::Gaussian>(&r.mechanism))
      event = fmt::format("dp_event.GaussianDpEvent({})", privacy::number(gaussian->sigma));
    else
      return "";
    events += fmt::format("    dp_event.SelfComposedDpEvent(\n        {},\n        {}),\n", event,
                          r.count);
  }
  return fmt::format(
      "from dp_accounting import dp_event\n"
      "from dp_accounting.pld import pld_privacy_accountant\n"
      "event = dp_event.ComposedDpEvent([\n{}])\n"
      "accountant = pld_privacy_accountant.PLDAccountant()\n"
      "accountant.compose(event)\n"
      "print(accountant.get_epsilon({}))  # stated: {}\n",
      events, privacy::number(c.delta - c.failure), rounded_up(c.epsilon));
}

Section checks_of(const ReportFiles& files, const RunCertificate& c) {
  Section s{.id = "check", .title = "How to check it", .blocks = {}};
  s.blocks.push_back(
      Paragraph{"With the program, from this folder alone. It computes every number again that "
                "follows from others, and makes this page again and compares it:"});
  s.blocks.push_back(Code{.language = "sh", .text = "cudp verify .\n"});
  if (const std::string code = dp_accounting_code(c.stated); !code.empty()) {
    s.blocks.push_back(Paragraph{
        "With dp_accounting of Google, which shares no code with cudp (pip install "
        "dp-accounting). Its answer may be larger by up to a thousandth, for its coarser grid:"});
    s.blocks.push_back(Code{.language = "python", .text = code});
  } else {
    s.blocks.push_back(Paragraph{
        "With dp_accounting of Google, which shares no code with cudp: "
        "scripts/check_certificate.py of cudp's source composes the releases that privacy.json "
        "lists."});
  }
  std::vector<std::string> trusted = verify::taken_on_trust({.certificate = files.certificate,
                                                             .ledger = {},
                                                             .transcript = {},
                                                             .settings = files.settings});
  s.blocks.push_back(Paragraph{"What no check of these files can show, and is taken on trust:"});
  s.blocks.push_back(Bullets{std::move(trusted)});
  return s;
}

/// Returns a section that lists the files of the run's folder release/. Which files there are
/// follows from `files`, the contents of the run's files.
Section files_of(const ReportFiles& files, const RunFacts& f) {
  page::Table table{.caption = "Files in release/ beside any that you added",
                    .columns = {"file", "what it is"},
                    .rows = {}};
  const auto add = [&](const char* name, const char* what) { table.rows.push_back({name, what}); };
  const auto has = [&](const char* key) {
    return files.model && files.model->metadata.contains(key);
  };
  add("report.html", "This report.");
  add("PRIVACY.txt", "The same sentences as plain text.");
  add("README.md", "The model card: the promise in short, and how to load the weights.");
  add("privacy.json", "The certificate: every number of the promise, for programs.");
  if (!f.certificate->texts("not_for_release").empty())
    add("NOT-FOR-RELEASE.txt", "The reasons why this run is not for release.");
  if (!files.settings.empty()) add("config.toml", "All settings of the run.");
  if (!files.metrics.empty())
    add("metrics.jsonl",
        f.certificate->stated.test_set.starts_with("public")
            ? "One line for each time the run was measured: steps, the spent budget, and figures "
              "of public test rows."
            : "One line for each time the run was measured: steps and the spent budget.");
  if (files.model) add("model.safetensors", "The weights, with the names and layouts of PyTorch.");
  if (has("words") || has("tokenizer"))
    add("vocabulary.txt", "The words or marks that the model knows.");
  if (!files.schema.empty())
    add("schema.toml", "The columns of the table, with their bounds and values.");
  if (!files.holdout.empty())
    add("holdout.json", "Figures of held-out rows, with noise that their budget paid for.");
  if (files.model && f.certificate->stated.test_set.starts_with("public")) {
    add("evaluation.json", "All figures of the public test rows.");
    for (const char* const picture : kEvaluationPictures)
      add(picture, "A picture of them, if gnuplot was there.");
  }
  if (files.model) add("curves.png", "A picture of metrics.jsonl, if gnuplot was there.");
  return {.id = "files", .title = "The files", .blocks = {table}};
}

std::vector<Section> sections_of(const ReportFiles& files, const RunFacts& f) {
  std::vector<Section> all = {{.id = "in-short",
                               .title = "In short",
                               .blocks = {Paragraph{what_it_is(f)}, in_short(f, Detail::page)}}};
  if (!f.certificate || !std::isfinite(f.certificate->stated.epsilon)) {
    all.push_back(results_of(f, files));
    all.push_back(data_of(f));
    all.push_back(settings_of(f));
    return all;
  }
  all.push_back(promise_of(*f.certificate));
  all.push_back(not_covered_of(*f.certificate));
  all.push_back(results_of(f, files));
  for (Section& s : questions_of(f)) {
    if (s.id == "guarantee")
      s.blocks.insert(s.blocks.begin(),
                      Paragraph{"The questions from here on are those of NIST SP 800-226, "
                                "Guidelines for Evaluating Differential Privacy Guarantees."});
    if (s.id == "deployment") all.push_back(data_of(f));
    all.push_back(std::move(s));
  }
  all.push_back(settings_of(f));
  all.push_back(files_of(files, f));
  all.push_back(checks_of(files, *f.certificate));
  return all;
}

}  // namespace

Document privacy_report(const ReportFiles& files) {
  const RunFacts f = facts_of(files);
  Document d = headed("Privacy report", f);
  d.sections = sections_of(files, f);
  return d;
}

Pages make_pages(const ReportFiles& files) {
  const Document report = privacy_report(files);
  return {.report = page::to_html(report),
          .privacy = page::to_text(report),
          .card = page::to_markdown(model_card(files))};
}

}  // namespace cudp
