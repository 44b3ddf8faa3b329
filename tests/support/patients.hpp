#pragma once
// The table of README's story: patients of whom 3 % die, with missing cells and names that are not
// ASCII.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>

#include <spdlog/fmt/fmt.h>

namespace cudp {

inline constexpr std::array kWards = {"Chirurgie", "Geburtshilfe", "Kardiologie", "Süd",
                                      "Übergang, neu"};

/// Returns a table of patients. The probability of death depends on age, blood pressure, the ward
/// and smoking; a twelfth of the cells of each measured column is missing.
inline std::string patients(std::size_t rows, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto cell = [&](const std::string& text) {
    return random() % 12 == 0 ? std::string() : text;
  };
  std::string csv = "patient,age,pressure,lactate,ward,smoker,größe,died\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const double age = std::clamp(58.0 + 18.0 * normal(random), 0.0, 104.0);
    const double pressure = 125.0 + 20.0 * normal(random);
    const double lactate = std::exp(0.4 + 0.6 * normal(random));
    const std::size_t ward = random() % kWards.size();
    const bool smoker = random() % 4 == 0;
    const double z = -4.5 + 0.055 * (age - 58.0) - 0.02 * (pressure - 125.0) +
                     0.5 * (lactate - 1.8) + (ward == 2 ? 0.9 : 0.0) + (smoker ? 0.6 : 0.0);
    const bool died = std::uniform_real_distribution<>()(random) < 1.0 / (1.0 + std::exp(-z));
    csv += fmt::format(
        "P{},{},{},{},\"{}\",{},{},{}\n", 100000 + i, cell(std::to_string(static_cast<int>(age))),
        cell(fmt::format("{:.1f}", pressure)), cell(fmt::format("{:.2f}", lactate)), kWards[ward],
        cell(smoker ? "ja" : "nein"), cell(fmt::format("{:.0f}", 170.0 + 10.0 * normal(random))),
        died ? "YES" : "NO");
  }
  return csv;
}

/// Schema of such a table, with what is publicly known about it.
inline constexpr const char* kPatientsSchema = R"(name = "patients"
columns = [
  {name = "patient", kind = "id"},
  {name = "age", kind = "numeric", min = 0, max = 105, fill = 58},
  {name = "pressure", kind = "numeric", min = 60, max = 220, fill = 125},
  {name = "lactate", kind = "numeric", min = 0, max = 20, transform = "log", fill = 1.5},
  {name = "ward", kind = "categorical", values = ["Chirurgie", "Geburtshilfe", "Kardiologie", "Süd", "Übergang, neu"]},
  {name = "smoker", kind = "categorical", values = ["ja", "nein"]},
  {name = "größe", kind = "numeric", min = 100, max = 220, fill = 170},
  {name = "died", kind = "label", values = ["NO", "YES"]},
]
)";

}  // namespace cudp
