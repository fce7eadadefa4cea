"""All families: name -> templates. A template is f(rng, number) -> Problem; `number` counts the
problems that one template has made, from 0."""

from . import dates, money, numbers, rates, stock, tables, units, words

FAMILIES = {
    "discounts": money.DISCOUNTS,
    "compound_interest": money.COMPOUND_INTEREST,
    "work_rates": rates.WORK_RATES,
    "motion": rates.MOTION,
    "calendar": dates.CALENDAR,
    "schedules": dates.SCHEDULES,
    "unit_conversion": units.UNIT_CONVERSION,
    "csv_tables": tables.CSV_TABLES,
    "json_tables": tables.JSON_TABLES,
    "logs": stock.LOGS,
    "inventory": stock.INVENTORY,
    "strings": words.STRINGS,
    "sets": words.SETS,
    "number_theory": numbers.NUMBER_THEORY,
    "matrix": numbers.MATRIX,
    "probability": numbers.PROBABILITY,
}
