"""What fills a seat: the contract, the choice, and one file per runtime."""
