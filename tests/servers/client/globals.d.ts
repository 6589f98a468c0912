// All that the client needs of Node.
declare const process: { argv: string[] };
