#include "runtime/report/sentences.hpp"

#include <cmath>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/rounded_text.hpp"

namespace cudp {
namespace {

using nlohmann::json;

double number_at(const json& j, const char* key) {
  return j.contains(key) && j[key].is_number() ? j[key].get<double>() : 0.0;
}

/// Name under which certificates list the noisy number of training examples.
constexpr std::string_view kSizeRelease = "size of the training set";

Sentences status(const RunCertificate& c) {
  Sentences p{.heading = "status", .sentences = {}};
  if (c.stated.status == "refused")
    p.sentences.emplace_back(
        "Nothing was trained: the noisy row count allowed no plan. That count was released, and "
        "this is what it spent.");
  else if (c.stated.status != "finished")
    p.sentences.emplace_back("The run is not finished: what follows is its plan.");
  else
    p.sentences.emplace_back("The run is finished.");
  const std::vector<std::string> reasons = c.texts("not_for_release");
  if (!reasons.empty()) p.sentences.emplace_back("It is NOT for release:");
  for (const std::string& reason : reasons) p.sentences.push_back("- " + reason);
  return p;
}

Sentences promise(const RunCertificate& c) {
  Sentences p{.heading = "promise", .sentences = {}};
  p.sentences.push_back(fmt::format("Epsilon is {} at delta {}, for one {} of {} more or less.",
                                    short_rounded_up(c.stated.epsilon),
                                    short_rounded_up(c.stated.delta),
                                    c.has_unit() ? "value of the column " + quoted(c.stated.unit)
                                    : c.stated.holdout ? "row"
                                                       : "training row",
                                    quoted(c.text("dataset"))));
  if (c.has_unit())
    p.sentences.push_back(
        fmt::format("All rows with one text in that column are a unit; the first {} of them were "
                    "used at most.",
                    c.stated.max_rows));
  else
    p.sentences.emplace_back(
        "This run protects single rows. A person with several rows has a weaker promise; to "
        "protect all rows of a person together, train again with unit = \"COLUMN\" and max_rows "
        "in the schema of the table.");
  return p;
}

/// Returns e^epsilon, rounded up to the number of digits that ratio_text() shows.
double rounded_times(double epsilon) {
  const double times = std::exp(epsilon);
  return times < 100.0 ? std::ceil(100.0 * times) / 100.0 : std::ceil(times);
}

std::string ratio_text(double times) {
  return times < 100.0 ? fmt::format("{:.2f}", times) : fmt::format("{:.0f}", times);
}

/// Returns a sentence that relates two ways to express the same guarantee: a factor on the odds,
/// and a fraction of correct guesses. "" if e^epsilon is 1e6 or more.
std::string same_fact(double epsilon) {
  const double times = std::exp(epsilon);
  if (!(times < 1e6)) return "";
  return fmt::format(
      " These two numbers, both rounded up, are one fact: who is right {0} times for each time "
      "wrong "
      "is right in {0} of {1} cases.",
      times_text(epsilon), ratio_text(1.0 + rounded_times(epsilon)));
}

Sentences meaning(const RunCertificate& c) {
  const double epsilon = c.stated.epsilon;
  const double delta = c.stated.delta;
  const char* const one = c.has_unit() ? "unit" : "row";
  Sentences p{.heading = "meaning", .sentences = {}};
  p.sentences.push_back(fmt::format(
      "Whatever the release shows is at most {1} times as likely with a certain {0} in the data as "
      "without it, and the other way round, but for a probability of {2:.3g}.",
      one, times_text(epsilon), delta));
  p.sentences.push_back(
      fmt::format("Whoever could only toss a coin on whether a certain {0} was used is right in at "
                  "most {1} of all "
                  "cases instead of 50 %, even with every other {0} at hand.{2}",
                  one, percent_up(max_right_guesses(epsilon, delta)), same_fact(epsilon)));
  if (epsilon > 10.0)
    p.sentences.emplace_back("An epsilon above 10 rules out very little.");
  else if (epsilon > 3.0)
    p.sentences.emplace_back("An epsilon above 3 is a weak promise; attacks do worse in practice.");
  if (std::string none = c.text("groups"); !none.empty()) {
    if (constexpr std::string_view kBegin = "not stated: "; none.starts_with(kBegin))
      none.erase(0, kBegin.size());
    p.sentences.push_back(fmt::format(
        "{} have a larger epsilon than one {}, and no number for it is proved: {}.",
        c.has_unit() ? "Several units together" : "Several rows of one person", one, none));
  }
  if (!c.json.contains("groups") || !c.json["groups"].is_array()) return p;
  std::string groups;
  for (const json& row : c.json["groups"]) {
    const double size = number_at(row, c.has_unit() ? "units" : "examples");
    if (size > 1.0 && row.contains("epsilon") && row["epsilon"].is_number())
      groups += fmt::format("{}{:.0f} {}s {}", groups.empty() ? "" : ", ", size, one,
                            short_rounded_up(number_at(row, "epsilon")));
  }
  if (!groups.empty())
    p.sentences.push_back((c.has_unit() ? "Several units together, a family's say, have a larger "
                                          "epsilon: "
                                        : "A person with several rows has a larger epsilon: ") +
                          groups + ".");
  return p;
}

/// Returns whether the certificate belongs to an unfinished `cudp tune`, which states the budget
/// but no releases.
bool is_charge_of_tuning(const RunCertificate& c) { return c.stated.method == "tune"; }

Sentences how(const RunCertificate& c) {
  const verify::StatedNumbers& s = c.stated;
  Sentences p{.heading = "how", .sentences = {}};
  const std::string noise =
      c.json.contains("noise_over_time")
          ? "Gaussian noise, more of it in some steps than in others,"
          : fmt::format("Gaussian noise of {:.4g} (sigma {:.4g})", s.noise_std, s.sigma);
  if (s.sampling == "poisson" && s.sigma > 0.0)
    p.sentences.push_back(fmt::format(
        "{}: {} times, each row was drawn with probability {:.4g} (about {:.0f} rows), its part in "
        "the sum was bounded to norm {:.4g}, and {} was added to the sum.",
        s.method, s.steps, s.q, s.expected_batch, s.clip, noise));
  else if (s.sampling == "allocation" && s.sigma > 0.0)
    p.sentences.push_back(fmt::format(
        "{}: in each of {} epochs, each row was used in exactly one of {} steps, chosen at random "
        "(about {:.0f} rows a step), its part in the sum of that step was bounded to norm {:.4g}, "
        "and {} was added to each sum.",
        s.method, s.steps / s.steps_of_release(), s.epoch_steps, s.expected_batch, s.clip, noise));
  else
    p.sentences.push_back(s.method + ": " + c.text("mechanism") + ".");
  if (!s.accountant.empty())
    p.sentences.push_back("What all this spends together was computed by the accountant \"" +
                          s.accountant +
                          "\", a bound from above, which cudp verify computes again.");
  if (s.split)
    p.sentences.push_back(fmt::format(
        "The number of steps and their noise follow from a noisy row count. Before that was "
        "drawn, the budget was divided: the count has epsilon {} at delta {}, and the "
        "training, whatever the count had been, {} at {}. Both parts add up to the whole. "
        "That is proved for {}.",
        short_rounded_up(s.split->count_epsilon), short_rounded_up(s.split->count_delta),
        short_rounded_up(s.split->training_epsilon), short_rounded_up(s.split->training_delta),
        c.has_unit()
            ? fmt::format("one unit with its rows, up to {}, but not for several units together",
                          s.max_rows)
            : "one row, but not for several rows together"));
  if (s.lost_a_key())
    p.sentences.push_back(fmt::format(
        "The key of the noise was lost or renewed on the way, and {} releases were made, and paid "
        "for, again. How many there are may have been chosen by what they showed, so that the "
        "epsilon of this run is that of its budget, for single {}s alone.",
        s.repeated, c.has_unit() ? "unit" : "row"));
  return p;
}

Sentences released(const RunCertificate& c) {
  Sentences p{.heading = "released", .sentences = {}};
  if (c.stated.status == "finished")
    p.sentences.emplace_back("The model, and everything else in release/.");
  if (is_charge_of_tuning(c))
    p.sentences.emplace_back("A noisy row count, unless the row count is public.");
  else if (c.stated.examples)
    p.sentences.push_back(
        fmt::format("The row count, {}: it counts as public.", *c.stated.examples));
  else if (c.stated.size_noise > 0.0)
    p.sentences.push_back(fmt::format(
        "A noisy row count, {:.0f} +- {:.3g}: {} part of epsilon.", c.stated.size,
        c.stated.size_noise,
        c.stated.split ? short_rounded_up(c.stated.split->count_epsilon) + " is its" : "it is"));
  if (c.json.contains("feature_release") && c.json["feature_release"].is_object()) {
    const json& what = c.json["feature_release"];
    p.sentences.push_back("For the features: " +
                          (what.contains("what") && what["what"].is_string()
                               ? what["what"].get<std::string>()
                               : std::string("a noisy summary")) +
                          "; it is part of epsilon.");
  }
  for (const privacy::NoisyValue& l : c.stated.noisy_values)
    if (l.name != kSizeRelease)
      p.sentences.push_back(fmt::format("Besides the steps: {}, with noise {:.4g}, {}.", l.name,
                                        l.noise_std,
                                        l.times == 1 ? "once" : fmt::format("{} times", l.times)));
  return p;
}

Sentences tuning(const RunCertificate& c) {
  Sentences p{.heading = "tuning", .sentences = {}};
  if (!c.stated.tuning) return p;
  const auto& t = *c.stated.tuning;
  p.sentences.push_back(fmt::format(
      "Epsilon covers the choice of the settings: of {} candidates, a secret number of trainings, "
      "{:.3g} on average, drew one each, and the best one alone was released.",
      t.grid.size(), t.mean));
  p.sentences.push_back(fmt::format("One such training has epsilon {} at delta {}.",
                                    rounded_up(c.stated.training_epsilon),
                                    short_rounded_up(c.stated.training_delta)));
  p.sentences.emplace_back(
      "Not covered: how long it took, which shows the number of trainings to whoever saw it.");
  return p;
}

Sentences test_rows(const RunCertificate& c) {
  const std::string set = c.text("test_set");
  const char* const one = c.has_unit() ? "unit" : "row";
  Sentences p{.heading = "test rows", .sentences = {}};
  if (const auto& held = c.stated.holdout) {
    p.sentences.push_back(
        fmt::format("{:.3g} % of the {} were held out, each by a secret coin, and not trained on.",
                    100.0 * held->share, c.has_unit() ? "units" : "rows"));
    p.sentences.emplace_back("Exact figures of them stay in private/.");
    if (held->releases > 0)
      p.sentences.push_back(
          fmt::format("release/holdout.json has noisy ones, once, for epsilon {} at delta {}.",
                      short_rounded_up(held->epsilon), short_rounded_up(held->delta)));
    if (c.stated.tuning) {
      p.sentences.push_back(fmt::format(
          "The same rows were held out from all trainings of the tuning, and scored them. Each {} "
          "is in one part only, and the epsilon above holds for each part.",
          one));
      return p;
    }
    p.sentences.push_back(fmt::format(
        "What was trained on is promised epsilon {} at delta {}. Each {} is in one part only, "
        "trained on or held out, so the larger epsilon and delta of both parts, not their sums, "
        "are those of all that was released.",
        short_rounded_up(c.stated.training_epsilon), short_rounded_up(c.stated.training_delta),
        one));
    return p;
  }
  if (set.starts_with("public"))
    p.sentences.emplace_back(
        "They count as public: accuracies are exact and in release/. Epsilon does not cover them.");
  else if (set.starts_with("not public"))
    p.sentences.emplace_back(
        "They are private, and epsilon does not cover them: accuracies are exact, stay in "
        "private/, and are not for others.");
  else
    p.sentences.emplace_back("There are none: no accuracy was measured.");
  return p;
}

/// Returns a sentence on what the guarantee does not cover if training started from a file of
/// weights.
std::string public_input_text(const nlohmann::json& input) {
  const auto text = [&](const char* key) {
    return input.contains(key) && input[key].is_string() ? input[key].get<std::string>() : "";
  };
  std::string all = "The examples behind the initial weights of " + quoted(text("file")) +
                    ", a file that counts as public (SHA-256 " + text("sha256") + ").";
  if (const std::string earlier = text("not_counted"); !earlier.empty())
    all += " Known of it: " + earlier + ".";
  return all;
}

Sentences not_covered(const RunCertificate& c) {
  Sentences p{.heading = "not covered", .sentences = {}};
  p.sentences = {
      "Other runs and other publications about the same persons: their epsilons add up. The "
      "command \"cudp account RUN RUN ...\", with the runs' folders, adds up those of runs.",
      fmt::format("Settings that were chosen by looking at other runs on the same rows{}: each of "
                  "those runs spends a budget of its own.",
                  c.stated.tuning ? ", except the runs of this tuning" : ""),
      fmt::format("{}: their epsilon is larger{}.",
                  c.has_unit() ? fmt::format("Several values of the column {} together, for "
                                             "example those of a family",
                                             quoted(c.stated.unit))
                               : "Several rows of one person",
                  c.text("groups").empty() ? "" : ", and how large is not proved")};
  if (c.has_unit())
    p.sentences.push_back(
        fmt::format("A person under two texts of the column {}: they count as two persons.",
                    quoted(c.stated.unit)));
  if (c.stated.test_set.starts_with("public"))
    p.sentences.emplace_back("The test rows, which count as public.");
  else if (c.stated.test_set.starts_with("not public") && !c.stated.holdout)
    p.sentences.emplace_back("The private test rows: exact figures of them are in private/.");
  p.sentences.emplace_back(
      "What somebody saw who watched the training: the time that steps took, memory, and messages, "
      "for example about rows that do not fit the schema.");
  if (c.stated.status == "finished")
    p.sentences.emplace_back(
        "Rows that are predicted with the model: a prediction may show something about its row.");
  p.sentences.emplace_back("Files that somebody added to release/, and private/.");
  if (!c.stated.examples && c.stated.size_noise == 0.0) p.sentences.emplace_back("The row count.");
  for (const std::string& flag : c.texts("unsafe_flags"))
    p.sentences.push_back("Chosen to be left out: " + flag + ".");
  if (c.text("arithmetic").starts_with("proved for real numbers"))
    p.sentences.emplace_back(
        "What floating-point rounding reveals: the proof is for real numbers.");
  if (c.json.contains("public_inputs") && c.json["public_inputs"].is_array())
    for (const nlohmann::json& input : c.json["public_inputs"])
      if (input.is_object()) p.sentences.push_back(public_input_text(input));
  for (const std::string& warning : c.texts("warnings"))
    p.sentences.push_back("Warning: " + warning);
  return p;
}

}  // namespace

std::string times_text(double epsilon) {
  if (!(std::exp(epsilon) < 1e6)) return "any number of";
  return ratio_text(rounded_times(epsilon));
}

std::vector<std::string> sentences_under(std::string_view heading, const RunCertificate& c) {
  for (Sentences& s : sentences_of(c))
    if (s.heading == heading) return std::move(s.sentences);
  return {};
}

double max_right_guesses(double epsilon, double delta) {
  return (1.0 + delta * std::exp(-epsilon)) / (1.0 + std::exp(-epsilon));
}

std::string percent_up(double share) {
  return fmt::format("{:.1f} %", std::fmin(100.0, std::ceil(1000.0 * share - 1e-9) / 10.0));
}

std::string quoted(std::string name) {
  for (char& c : name) {
    if (c == '"') c = '\'';
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return '"' + name + '"';
}

std::vector<Sentences> sentences_of(const RunCertificate& c) {
  std::vector<Sentences> all = {status(c)};
  if (!std::isfinite(c.stated.epsilon)) return all;
  for (auto* const part : {promise, meaning}) all.push_back(part(c));
  if (c.stated.status != "refused") all.push_back(how(c));
  if (c.stated.tuning) all.push_back(tuning(c));
  for (auto* const part : {released, test_rows, not_covered}) all.push_back(part(c));
  return all;
}

}  // namespace cudp
