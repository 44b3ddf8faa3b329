// One writer and one reader of certificates: what is written is read as it was.
#include "privacy/certificate/certificate.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cudp {
namespace {

using privacy::Certificate;

/// A certificate with every optional part of the format.
Certificate with_everything() {
  Certificate c;
  c.status = Certificate::Status::not_finished;
  c.not_for_release = {"not finished: a plan", "seed: known"};
  c.promise = {.epsilon = 1.5,
               .delta = 1e-6,
               .method = "dpsgd",
               .mechanism = "Poisson-subsampled Gaussian (DP-SGD)",
               .how = privacy::NoPrivacy{}};
  c.groups = {.bounds = {{.units = 1, .epsilon = 1.5, .reason = {}},
                         {.units = 16, .epsilon = {}, .reason = "no bound"}},
              .not_stated = {}};
  c.noisy_values = {{.name = "size of the training set",
                     .times = 1,
                     .numbers = 1,
                     .grid = 0x1p-20,
                     .noise_std = 12.5,
                     .sensitivity = 1.0}};
  c.unit = {.column = "patient", .max_rows = 4};
  c.dataset = "visits";
  c.normalise = "unit";
  c.features = "pca";
  c.feature_release = {.sigma = 3.25, .dimensions = 7};
  c.class_weights = {1.0, 2.5};
  c.size = {.value = 1003.0, .noise_std = 12.5};
  c.split = {.sigma = 12.5,
             .epsilon = 1.5,
             .delta = 1e-6,
             .count_epsilon = 0.06,
             .count_delta = 1e-7,
             .training_epsilon = 1.4375,
             .training_delta = 9e-7,
             .group = 4};
  c.test_set = Certificate::TestSet::private_rows;
  c.precision = "tf32";
  c.rng = "philox";
  c.seeded = true;
  c.unsafe_flags = {"unsafe-diagnostics"};
  c.allow_weak_privacy = c.fresh_noise_allowed = true;
  c.keys_lost = 2;
  c.releases_repeated = 5;
  c.assumptions = {"a row is a line"};
  c.warnings = {"epsilon 30 is above 20"};
  c.build = {.version = "1", .commit = "abc", .compiler = "gcc", .backend = "cpu"};
  c.hold_out({.share = 0.25,
              .epsilon = 2.0,
              .delta = 1e-7,
              .sigma = 4.5,
              .releases = 1,
              .threshold = 0.5});
  return c;
}

const privacy::MinimisedRisk kRisk = {
    .regulariser = 0.25, .max_norm = 1.5, .huber = 0.5, .solver_tolerance = 1e-6};
const std::vector<privacy::Release> kReleases = {{privacy::Gaussian{2.0}, 3},
                                                 {privacy::BoundedRange{0.25}, 4},
                                                 {privacy::ApproximateDp{0.5, 1e-7}, 1},
                                                 {privacy::ApproximateDp{0.75, 0.0}, 2}};

TEST(CertificateText, IsReadAsItWasWrittenWhateverTheMethod) {
  const std::vector<privacy::Release> steps = {{privacy::Gaussian{12.5}, 1},
                                               {privacy::AllocatedGaussian{118, 1.75}, 20},
                                               {privacy::PoissonGaussian{0.125, 1.5}, 40}};
  const std::pair<const char*, decltype(privacy::Promise::how)> methods[] = {
      {"dpsgd", privacy::NoisySums{.sampling = "poisson",
                                   .q = 0.125,
                                   .sampling_threshold = 1u << 29,
                                   .sigma = 1.5,
                                   .clip_norm = 0.5,
                                   .clipping = "flat",
                                   .clipped = "scaled gradients",
                                   .clip_norm_is = "the longest gradient",
                                   .sensitivity = 0.50001,
                                   .noise_std = 0.75,
                                   .grid = 0x1p-22,
                                   .noise_over_time = {{0.5, 2.0}},
                                   .expected_batch = 125.0,
                                   .steps = 40,
                                   .steps_planned = 44,
                                   .releases = steps,
                                   .accountant = "rdp",
                                   .epsilon_lower = 1.25,
                                   .loss_interval = 1e-4,
                                   .order = 12.5,
                                   .order_fixed_before = true,
                                   .delta_for_rounding = 1e-15,
                                   .norm_total_noise = 50.0,
                                   .quantile = {{.target = 0.5,
                                                 .min_clip_norm = 0.001,
                                                 .max_clip_norm = 10.0,
                                                 .last_clip_norm = 0.1f,
                                                 .gradient_noise_multiplier = 1.75,
                                                 .count_sensitivity = 0.5,
                                                 .count_noise_std = 3.5}}}},
      {"dp-agd", privacy::FilteredReleases{.sampling_threshold = 77,
                                           .clip_norm = 0.5,
                                           .loss_clip = 2.0,
                                           .sensitivity = 0.51,
                                           .loss_sensitivity = 2.1,
                                           .selection_noise = "laplace",
                                           .real_numbers_only = true,
                                           .steps = 9,
                                           .releases = kReleases,
                                           .rho = 0.5,
                                           .rho_spent = 0.25,
                                           .classical_budget = true}},
      {"objpert", privacy::PerturbedObjective{.risk = kRisk,
                                              .noise_std = 1.0,
                                              .sensitivity = 2.0,
                                              .kappa = 0.5,
                                              .output_noise_std = 0.125,
                                              .output_sensitivity = 0.25,
                                              .releases = kReleases}},
      {"outpert", privacy::PerturbedOutput{.risk = kRisk,
                                           .sigma = 2.0,
                                           .sensitivity = 0.5,
                                           .noise_std = 1.0,
                                           .grid = 0x1p-30,
                                           .releases = kReleases}},
      {"privgene", privacy::ChosenParents{.loss_clip = 2.0,
                                          .loss_sensitivity = 2.5,
                                          .selection_epsilon = 0.125,
                                          .generations = 8,
                                          .candidates = 20,
                                          .parents = 2,
                                          .releases = kReleases}}};
  for (const auto& [method, how] : methods) {
    SCOPED_TRACE(method);
    Certificate c = with_everything();
    c.promise.method = method;
    c.promise.how = how;
    const std::string text = to_text(c);
    EXPECT_EQ(to_text(privacy::read_certificate(text)), text);
    // Every field that is taken away is missed by the reader, or changes what it reads.
    const auto fields = nlohmann::ordered_json::parse(text);
    for (const auto& [key, value] : fields.items()) {
      if (key == "format" || value.is_string()) continue;  // a constant of the format, or a text
      auto less = nlohmann::ordered_json::parse(text);
      less.erase(key);
      std::string again;
      try {
        again = to_text(privacy::read_certificate(less.dump()));
      } catch (const std::invalid_argument&) {
        continue;
      }
      EXPECT_TRUE(again != text || key == "for_release") << key;
    }
  }
}

TEST(CertificateText, OfARefusedRunIsReadAsItWasWritten) {
  Certificate c = with_everything();
  c.status = Certificate::Status::refused;
  c.promise.how = privacy::CountedExamples{.releases = {{privacy::Gaussian{12.5}, 1}},
                                           .accountant = "gaussian"};
  const std::string text = to_text(c);
  EXPECT_EQ(to_text(privacy::read_certificate(text)), text);
}

TEST(CertificateText, WithoutOptionalPartsIsReadAsItWasWritten) {
  Certificate c;
  c.epsilon = c.promise.epsilon = 2.0;
  c.delta = c.promise.delta = 1e-5;
  c.promise.method = "dpsgd";
  c.promise.how = privacy::NoisySums{};
  c.groups = privacy::Groups{.bounds = {}, .not_stated = "not stated: a key was lost"};
  c.size.value = 400.0;
  const std::string text = to_text(c);
  EXPECT_EQ(to_text(privacy::read_certificate(text)), text);
  EXPECT_TRUE(privacy::read_certificate(text).for_release());
}

TEST(CertificateText, OfAnUnknownStatusOrTestSetIsRefusedByName) {
  Certificate c = with_everything();
  c.promise.how = privacy::NoisySums{};
  for (const char* const field : {"status", "test_set"}) {
    auto json = nlohmann::ordered_json::parse(to_text(c));
    json[field] = "another";
    try {
      static_cast<void>(privacy::read_certificate(json.dump()));
      ADD_FAILURE() << field << " was read";
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find(std::string(field) + ": expected one of"),
                std::string::npos)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace cudp
