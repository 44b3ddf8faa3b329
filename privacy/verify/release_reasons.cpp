#include "privacy/verify/release_reasons.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

namespace cudp::verify {
namespace {

using Json = nlohmann::json;

std::string in_digits(const char* format, double number) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), format, number);
  return {text.data(), static_cast<std::size_t>(std::clamp(length, 0, 63))};
}

// Reasons because of which the file of initial weights forbids publishing the model.
constexpr const char* kOfAnUnpublishedRun =
    "initial weights are those of a run that is not for release";
constexpr const char* kOfTheSameName =
    "initial weights were trained on data of the same name, and no certificate is beside them";

/// All texts that a certificate may have in `unsafe_flags`: properties of a run's data or method
/// that forbid publishing its model.
constexpr const char* kUnsafe[] = {
    "unsafe-diagnostics",
    "bounds, categories or classes were read from private rows",
    "vocabulary counted from private text",
    "vocabulary not declared public: it may be counted from private text",
    kOfAnUnpublishedRun,
    kOfTheSameName,
    "noisy-min laplace: its privacy is proved for real numbers only; what the last bits of the "
    "computer's numbers tell beyond epsilon is not bounded",
    "objective perturbation: its privacy is proved for real numbers only; what the last bits of "
    "the computer's numbers tell beyond epsilon is not bounded"};

/// Implementation of check_release_reasons(): compares what a certificate states about the release
/// of its model with its settings and numbers.
class Reasons {
 public:
  Reasons(const Json& json, const StatedNumbers& c, const Settings& settings)
      : json_(json), c_(c), settings_(settings) {}

  std::vector<std::string> run() {
    const bool says = json_.at("for_release").get<bool>();
    const bool seeded = json_.at("seeded").get<bool>();
    if (seeded != settings_.has("seed")) wrong("seeded: the settings say otherwise");
    const Json& unsafe = json_.at("unsafe_flags");
    if (settings_.is_on("unsafe-diagnostics") !=
        (std::ranges::find(unsafe, Json("unsafe-diagnostics")) != unsafe.end()))
      wrong("unsafe_flags: expected unsafe-diagnostics exactly where the settings have it");
    for (const Json& flag : unsafe)
      if (std::ranges::find(kUnsafe, flag.get<std::string>()) == std::end(kUnsafe))
        wrong("unsafe_flags: expected flags of the program, found " + flag.dump());
    check_initial_weights(unsafe);
    const bool may = !seeded && !is_weak_generator() && unsafe.empty();
    if (says != may) wrong(std::string("for_release: expected ") + (may ? "true" : "false"));
    if (says == json_.contains("not_for_release"))
      wrong("not_for_release: expected exactly where it is not");
    check_reasons(seeded, unsafe);
    check_warnings();
    check_assumptions();
    check_test_set();
    return std::move(wrong_);
  }

 private:
  void wrong(std::string what) { wrong_.push_back(std::move(what)); }
  // Reasons against a release. They follow from the method and the settings, not from the presence
  // of a field in the certificate.
  bool is_weak_generator() const { return settings_.text("rng") == "philox"; }
  bool is_proved_for_real_numbers_only() const {
    if (c_.status == "refused") return false;  // neither objective nor choice was released
    return c_.method == "objpert" ||
           (c_.method == "dp-agd" && settings_.text("noisy-min") == "laplace");
  }
  bool states(const char* pointer) const { return json_.contains(Json::json_pointer(pointer)); }

  /// Checks the flags about the file of initial weights in `unsafe`, the certificate's field
  /// unsafe_flags. There must be one if and only if the certificate's public_inputs state that cudp
  /// trained the file in a run that is not for release, or on a data set with the same name as this
  /// run's and with no certificate beside the file.
  void check_initial_weights(const Json& unsafe) {
    const Json inputs = json_.value("public_inputs", Json::array());
    const std::string training =
        inputs.empty() ? "" : inputs[0].value("not_counted", std::string());
    const auto expect_flag = [&](const char* flag, bool must, bool may) {
      const bool has = std::ranges::find(unsafe, Json(flag)) != unsafe.end();
      if ((must && !has) || (has && !may))
        wrong("unsafe_flags: expected " + std::string(must ? "" : "no ") + "'" + flag +
              "', as public_inputs says");
    };
    const bool unpublished = training.ends_with(
        "' in a run that is not for release: what it may show of those rows is not counted here");
    expect_flag(kOfAnUnpublishedRun, unpublished, unpublished);
    constexpr const char* kUnknown =
        "' and no certificate is beside it: what it may show of those rows is not counted here";
    const std::string same =
        "cudp trained the file on '" + json_.at("dataset").get<std::string>() + kUnknown;
    // The certificate may state the data set's name with some characters replaced. So the flag is
    // allowed, but not required, if only the end of the text is equal.
    expect_flag(kOfTheSameName, training == same, training.ends_with(kUnknown));
  }

  /// Checks the certificate's field not_for_release, the list of reasons why the model must not be
  /// released. The list must have, in this order: the seed (if `seeded`), the random generator (if
  /// it is a weak one), and each flag in `unsafe`.
  void check_reasons(bool seeded, const Json& unsafe) {
    if (is_proved_for_real_numbers_only() && unsafe.empty())
      wrong("unsafe_flags: expected one, as the proof is for real numbers only");
    std::size_t next = 0;
    const Json reasons = json_.value("not_for_release", Json::array());
    const auto expect_reason = [&](const std::string& text, bool whole) {
      const std::string found =
          next < reasons.size() ? reasons[next].get<std::string>() : std::string("none");
      ++next;
      if (whole ? found != text : !found.starts_with(text))
        wrong("not_for_release: expected " + text + ", found " + found);
    };
    if (seeded) {
      // Certificates of earlier versions of the program have the text kEarlier.
      constexpr const char* kEarlier = "seed: whoever knows or guesses it can subtract the noise";
      const bool is_earlier = next < reasons.size() && reasons[next] == Json(kEarlier);
      expect_reason(is_earlier ? kEarlier : "seed: anyone who guesses it can subtract the noise",
                    true);
    }
    if (is_weak_generator())
      expect_reason("rng philox: not a cryptographic generator, its noise may be told apart", true);
    for (const Json& flag : unsafe) expect_reason(flag.get<std::string>(), true);
    if (next < reasons.size())
      wrong("not_for_release: expected no more, found " + reasons[next].dump());
  }

  void check_warnings() {
    double epsilon = c_.epsilon, delta = c_.delta;
    if (c_.status == "refused" && settings_.has("holdout-epsilon")) {
      // A run that ended at its noisy number of examples released no held-out figures, but its
      // warnings cover the budget planned for them.
      epsilon = std::fmax(epsilon, settings_.number("holdout-epsilon"));
      delta = std::fmax(delta, settings_.number("holdout-delta"));
    }
    Json due = Json::array();
    if (delta * c_.size > 1.0)
      due.push_back("delta " + in_digits("%.3g", delta) + " is above 1 / " +
                    in_digits("%.0f", c_.size) +
                    ", one over the number of training examples: a release of one example as it is "
                    "would satisfy it");
    if (epsilon > 20.0)
      due.push_back("epsilon " + in_digits("%.4g", epsilon) +
                    " is above 20: the guarantee rules out next to nothing");
    if (const Json& warnings = json_.at("warnings"); warnings != due)
      wrong("warnings: expected " + due.dump() + ", found " + warnings.dump());
  }

  /// Checks the assumptions that the certificate states about the rows of a table or an array, or
  /// about a user's own images. Data sets given by name have none.
  void check_assumptions() {
    std::vector<std::string> stated;
    if (states("/assumptions"))
      for (const Json& a : json_["assumptions"]) stated.push_back(a.get<std::string>());
    const auto has = [&](const std::string& text) {
      return std::ranges::find(stated, text) != stated.end();
    };
    static const std::string kRecord =
        "a row is what the table's quotes and line breaks make one, and one example adds one such "
        "row";
    static const std::string kLine = "a row is a line of the table, and one example adds one line";
    static const std::string kRefused =
        ": a training on a file with another is refused, and that is not counted";
    // Assumption about the values of an array (`finite`), or of images (`of_images`). The pixels of
    // images are bytes, and so always finite.
    const bool target = settings_.has("target-bounds") && !settings_.text("target-bounds").empty();
    const std::string finite = (target ? "every feature and every target is finite"
                                       : "every feature is finite and every label a class") +
                               kRefused;
    const std::string of_images =
        (target ? "every target is finite" : "every label is a class") + kRefused;
    static const std::string kRow = "a row of the matrix is one example";
    const std::string vectors = settings_.has("embedding") ? settings_.text("embedding") : "";
    const bool has_own_vectors = !vectors.empty() && vectors != "glove" && vectors != "minilm";
    const bool refuses = settings_.text("malformed") == "refuse";
    std::vector<std::string> due;
    if (has(kRecord) || has(kLine) || !c_.unit.empty()) {
      if (!has(kRecord) && !has(kLine)) wrong("assumptions: expected what a row is, found nothing");
      if (refuses)
        due.emplace_back(
            "every row of the table can be read: a training on a table with one that cannot is "
            "refused, and that is not counted");
      if (!c_.unit.empty()) {
        due.emplace_back(
            "a unit is what has one text in the column of units: whoever has two texts there is "
            "two "
            "units");
        if (!refuses) due.emplace_back("a row whose unit is missing or cannot be read is not used");
        if (c_.examples)
          due.emplace_back(
              "the number of rows that are used, those that max_rows leaves, is public");
      }
      if (has_own_vectors)
        due.emplace_back(
            "the vectors of --embedding and their words are public: no private text decided them");
    } else if (!stated.empty()) {
      due.push_back(!refuses ? kRow : has(of_images) ? of_images : finite);
    }
    for (const std::string& text : due)
      if (!has(text)) wrong("assumptions: expected '" + text + "', found none");
    for (const std::string& text : stated) {
      const bool known =
          text == kRecord || text == kLine || std::ranges::find(due, text) != due.end();
      if (!known || std::ranges::count(stated, text) != 1)
        wrong("assumptions: expected each that is due, once, found '" + text + "'");
    }
    if (has(kRecord) && has(kLine)) wrong("assumptions: expected one kind of row, found two");
  }

  /// Checks that test rows are stated as public only if a setting or the data set makes them so.
  /// Held-out rows are never public.
  void check_test_set() {
    const bool is_public = c_.test_set.starts_with("public");
    const bool has_test =
        c_.holdout || (settings_.has("test-data") && !settings_.text("test-data").empty());
    if (has_test && c_.test_set == "none") wrong("test_set: expected test rows, found none");
    if (is_public && c_.holdout) wrong("test_set: expected held-out rows not to be public");
    if (has_test && settings_.is_on("test-data-is-public") != is_public)
      wrong("test_set: the settings say otherwise");
  }

  const Json& json_;
  const StatedNumbers& c_;
  const Settings& settings_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> check_release_reasons(const Json& json, const StatedNumbers& c,
                                               const Settings& settings) {
  return Reasons(json, c, settings).run();
}

}  // namespace cudp::verify
